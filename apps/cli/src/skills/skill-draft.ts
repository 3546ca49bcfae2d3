import { basename } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Skill, type SkillDraftSchema, SkillScope } from '@etude/contracts/gen/etude/v1/skills_pb';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { readArgument, readText } from '../files.js';
import { bareName, scopeOf, type ScopeWord } from './skill-lines.js';
import { readTests } from './skill-tests.js';

export type Draft = MessageInitShape<typeof SkillDraftSchema>;

/** Flags that say what a skill is, as `add`, `edit` and `test` take them. */
export interface DraftOptions {
  readonly name?: string;
  readonly description?: string;
  readonly displayName?: string;
  readonly test?: readonly string[];
  readonly heldOut?: readonly string[];
  readonly category?: string;
  readonly tag?: readonly string[];
  readonly example?: readonly string[];
  readonly package?: readonly string[];
  readonly source?: readonly string[];
  readonly scope?: ScopeWord;
  readonly agent?: string;
  readonly user?: string;
  readonly kind?: string;
  readonly entryPoint?: string;
  readonly program?: boolean;
}

/** Code of a file; `-` is stdin. */
export const readCode = async (path: string): Promise<string> => (path === '-' ? readArgument('-') : readText(path));

const LONG = /^[ \t]*[rRuU]{0,2}("""|''')([\s\S]*?)\1/m;
/** In quotes of one line a string is a docstring only where it comes first: in the file, or below the line that ends a signature. */
const SHORT =
  /(?:(?<![\s\S])|^[ \t]*(?:async[ \t]+def\b|def\b|class\b|\)).*:[ \t]*(?:#.*)?\r?\n)(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*[rRuU]?(["'])((?:\\.|(?!\1)[^\\\n])+)\1[ \t]*(?:[;#].*)?\r?$/m;

/** First paragraph of the first docstring; '' where there is none. */
export function docstringOf(code: string): string {
  const [first] = [LONG.exec(code), SHORT.exec(code)].filter((found) => found !== null).toSorted((a, b) => a.index - b.index);
  const text = first?.[2]?.trim() ?? '';
  return text.split(/\n\s*\n/, 1)[0]?.replaceAll(/\s*\n\s*/g, ' ') ?? '';
}

/** "parse_csv" of "lib/Parse-CSV.py". */
export function nameOfFile(path: string): string {
  return basename(path)
    .replace(/\.py$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^[^a-z]+|_+$/g, '');
}

/** A new skill. @throws CliError where it has no name or no description */
export function newDraft(path: string, code: string, options: DraftOptions): Draft {
  const name = options.name ?? (path === '-' ? '' : nameOfFile(path));
  if (name === '') throw new CliError(EXIT.usage, 'the skill needs a name', ['give it with --name, such as --name parse_csv']);
  const description = options.description ?? docstringOf(code);
  if (description === '')
    throw new CliError(EXIT.usage, `${path} does not say what it does`, ['give the code a docstring, or say it with --description TEXT']);
  return { ...given(options), name, description, code, agent: options.agent ?? 'default', kind: options.kind ?? 'function' };
}

/** A skill of more than one agent is nobody's in particular: its scope says whose it is, and its owner ("@tenant") is no agent. */
function ownerOf({ scope, agent, user }: Skill): Pick<Draft, 'scope' | 'agent' | 'user'> {
  if (scope === SkillScope.UNSPECIFIED || scope === SkillScope.AGENT) return { scope: SkillScope.AGENT, agent, user };
  return { scope, agent: '', user: scope === SkillScope.USER ? user : '' };
}

/** What a docstring said before says nothing of other code; words of its author's own stay. */
function describedAnew(before: Skill, code: string): string {
  const said = docstringOf(code);
  return said !== '' && before.description === docstringOf(before.code) ? said : before.description;
}

/** The next version of one that is there, for the same readers: what is not given stays as it was. `tests` are those of the version before. */
export function nextDraft(skill: Skill, code: string, options: DraftOptions, tests: Draft['tests'] = []): Draft {
  const before: Draft = {
    displayName: skill.displayName,
    description: describedAnew(skill, code),
    entryPoint: skill.entryPoint,
    isProgram: skill.kind === 'function' && skill.entryPoint === '',
    tests,
    tags: skill.tags,
    category: skill.category,
    examplePrompts: skill.examplePrompts,
    packages: skill.packages,
    sources: skill.sources,
    kind: skill.kind,
  };
  const { name: _name, agent: _agent, scope: _scope, user: _user, ...changes } = options;
  return { ...before, ...given(changes), ...ownerOf(skill), name: bareName(skill.name), code };
}

/** Only what was said. */
function given(options: DraftOptions): Draft {
  const {
    description,
    displayName,
    test,
    heldOut,
    category,
    tag,
    example,
    package: packages,
    source,
    scope,
    user,
    kind,
    entryPoint,
    program,
  } = options;
  return {
    ...(description === undefined ? {} : { description }),
    ...(displayName === undefined ? {} : { displayName }),
    ...(test === undefined ? {} : { tests: test.flatMap(readTests) }),
    ...(heldOut === undefined ? {} : { heldOutTests: heldOut.flatMap(readTests) }),
    ...(category === undefined ? {} : { category }),
    ...(tag === undefined ? {} : { tags: [...tag] }),
    ...(example === undefined ? {} : { examplePrompts: [...example] }),
    ...(packages === undefined ? {} : { packages: [...packages] }),
    ...(source === undefined ? {} : { sources: [...source] }),
    ...(scope === undefined ? {} : { scope: scopeOf(scope) }),
    ...(user === undefined ? {} : { user }),
    ...(kind === undefined ? {} : { kind }),
    ...(entryPoint === undefined ? {} : { entryPoint, isProgram: false }),
    ...(program === true ? { isProgram: true, entryPoint: '' } : {}),
  };
}
