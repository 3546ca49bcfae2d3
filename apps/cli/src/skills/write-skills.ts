import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import {
  type CheckSkillResponse,
  type Skill,
  type SkillDraftSchema,
  Skills,
  SkillSchema,
  SkillScope,
  SkillStatus,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { parseExactJson } from '@etude/contracts/json';
import { status } from '@grpc/grpc-js';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { type Entry, type Flags, plain, skillReference } from '../command.js';
import { CliError, EXIT, isServiceError } from '../errors.js';
import { readArgument, readText } from '../files.js';
import { plural } from '../output.js';
import { bareName, doneLine, failureNotes, findingLine, list, nextNotes, scopeOf, type ScopeWord } from './skill-lines.js';
import { readTests, testCase } from './skill-tests.js';

type Draft = Exclude<MessageInitShape<typeof SkillDraftSchema>, { readonly $typeName: string }>;

/** Time for the tests, their mutants and the tests of other skills. */
export const VERIFY_TIMEOUT_MS = 120_000;

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

interface AddOptions extends DraftOptions {
  readonly wait?: boolean;
  readonly requestId?: string;
}

/** Reads code from a file; `-` is stdin. */
const readCode = async (path: string): Promise<string> => (path === '-' ? readArgument('-') : readText(path));

const LONG = /^[ \t]*[rRuU]{0,2}("""|''')([\s\S]*?)\1/m;
/** A string in quotes of one line is a docstring where it comes first: in the file, or below the line that ends a signature. */
const SHORT =
  /(?:(?<![\s\S])|^[ \t]*(?:async[ \t]+def\b|def\b|class\b|\)).*:[ \t]*(?:#.*)?\r?\n)(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*[rRuU]?(["'])((?:\\.|(?!\1)[^\\\n])+)\1[ \t]*(?:[;#].*)?\r?$/m;

/** The first paragraph of the first docstring; '' where there is none. */
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
    throw new CliError(EXIT.usage, `${path} has no docstring, and the skill needs a description`, [
      'give the code a docstring, or say it with --description TEXT',
    ]);
  return { ...given(options), name, description, code, agent: options.agent ?? 'default', kind: options.kind ?? 'function' };
}

/** The owner of the next version. A shared skill belongs to its scope: its owner ("@tenant") is no agent. */
function ownerOf({ scope, agent, user }: Skill): Pick<Draft, 'scope' | 'agent' | 'user'> {
  if (scope === SkillScope.UNSPECIFIED || scope === SkillScope.AGENT) return { scope: SkillScope.AGENT, agent, user };
  return { scope, agent: '', user: scope === SkillScope.USER ? user : '' };
}

/** A description that was the old docstring follows the new one; other words stay. */
function describedAnew(before: Skill, code: string): string {
  const said = docstringOf(code);
  return said !== '' && before.description === docstringOf(before.code) ? said : before.description;
}

/** The next version, for the same readers. What isn't given stays as it was. @param tests of the version before */
export function nextDraft(skill: Skill, code: string, options: DraftOptions, tests: Draft['tests'] = []): Draft {
  const { displayName, entryPoint, tags, category, examplePrompts, packages, sources, kind } = skill;
  const before: Draft = { displayName, entryPoint, tests, tags, category, examplePrompts, packages, sources, kind };
  const described = { description: describedAnew(skill, code), isProgram: kind === 'function' && entryPoint === '' };
  return { ...before, ...described, ...given(options), ...ownerOf(skill), name: bareName(skill.name), code };
}

/** Fields of a draft that flags fill as they are, by flag. */
const FIELDS = {
  description: 'description',
  displayName: 'displayName',
  category: 'category',
  tag: 'tags',
  example: 'examplePrompts',
  package: 'packages',
  source: 'sources',
  user: 'user',
  kind: 'kind',
} as const;

/** The fields of the flags that were given. */
function given(options: DraftOptions): Draft {
  const { test, heldOut, scope, entryPoint, program } = options;
  const asTyped = Object.entries(FIELDS).flatMap(([flag, field]) => {
    const value = options[flag as keyof typeof FIELDS];
    return value === undefined ? [] : [[field, value] as const];
  });
  return {
    ...(Object.fromEntries(asTyped) as Draft),
    ...(test === undefined ? {} : { tests: test.flatMap(readTests) }),
    ...(heldOut === undefined ? {} : { heldOutTests: heldOut.flatMap(readTests) }),
    ...(scope === undefined ? {} : { scope: scopeOf(scope) }),
    ...(entryPoint === undefined ? {} : { entryPoint, isProgram: false }),
    ...(program === true ? { isProgram: true, entryPoint: '' } : {}),
  };
}

export async function addSkill(cli: Cli, options: AddOptions, [path = '']: readonly string[]): Promise<number> {
  const draft = newDraft(path, await readCode(path), options);
  return withGateway(cli, (gateway) => register(cli, gateway, draft, { ...options, baseVersion: 0 }));
}

/** Carries the tests of the version before over, where this key may read them, unless others are given. */
export async function editSkill(cli: Cli, options: AddOptions, [skill = '', path = '']: readonly string[]): Promise<number> {
  const code = await readCode(path);
  return withGateway(cli, async (gateway) => {
    const before = await editedVersion(cli, gateway, skill, options);
    const tests = options.test === undefined && before.testCount > 0 ? await testsOf(cli, gateway, before) : [];
    return register(cli, gateway, nextDraft(before, code, options, tests), { ...options, baseVersion: before.version });
  });
}

/** The version that is named, else the newest, whether or not it is in use. */
async function editedVersion(cli: Cli, gateway: Gateway, skill: string, { scope, agent, user = '' }: AddOptions): Promise<Skill> {
  const shared = scope === undefined || scope === 'agent' ? undefined : `@${scope}`;
  const owner = shared ?? agent ?? (scope === 'agent' ? 'default' : '');
  const { name, version } = skillReference(skill);
  const asked = { name, agent: owner, user };
  if (version > 0) return gateway.skills.getSkill({ ...asked, version }, callSettings(cli));
  const [newest] = (await gateway.skills.listSkillVersions(asked, callSettings(cli))).skills;
  return newest ?? gateway.skills.getSkill(asked, callSettings(cli));
}

async function testsOf(cli: Cli, gateway: Gateway, { name, agent, user, version }: Skill): Promise<NonNullable<Draft['tests']>> {
  try {
    const { tests } = await gateway.skills.getSkillReview({ name, agent, user, version }, callSettings(cli));
    return tests.map((text, index) => testCase(parseExactJson(text), `test ${index + 1} of ${bareName(name)}`));
  } catch (error) {
    if (!isServiceError(error) || error.code !== status.PERMISSION_DENIED) throw error;
    const why = `this key may not read the tests of ${bareName(name)}, which the new version needs`;
    throw new CliError(EXIT.refused, why, ['give them with --test FILE, or use the key of a reviewer'], { cause: error });
  }
}

async function register(
  cli: Cli,
  gateway: Gateway,
  draft: Draft,
  { baseVersion, wait = false, requestId = randomUUID() }: AddOptions & { readonly baseVersion: number },
): Promise<number> {
  const request = { skill: draft, baseVersion, requestId, wait };
  if (wait) cli.out.status(`verifying ${draft.name} …`);
  const skill = await ridingOut(cli.signal, () => gateway.skills.registerSkill(request, callSettings(cli, wait ? VERIFY_TIMEOUT_MS : 0)));
  cli.out.status('');
  cli.out.data(toJson(SkillSchema, skill), doneLine(skill));
  for (const note of nextNotes(cli, skill)) cli.out.note(note);
  return skill.status === SkillStatus.REJECTED ? EXIT.failed : EXIT.ok;
}

/** `skills test`. */
export const checkSkill = (flags: Flags): Entry =>
  plain(Skills.method.checkSkill, {
    command: 'test <file>',
    help: 'what verification would find; stores nothing',
    flags,
    ask: async (_request, { options, args: [path = ''] }) => {
      const usual = { description: 'A draft that is tried.' };
      return { skill: newDraft(path, await readCode(path), { ...usual, ...(options as DraftOptions) }) };
    },
    leastMs: VERIFY_TIMEOUT_MS,
    status: ([path = '']) => `checking ${path} …`,
    whole: true,
    text: checkText,
    notes: ({ reason }) => failureNotes(reason),
    exit: ({ passed }) => (passed ? EXIT.ok : EXIT.failed),
  });

function checkText(found: CheckSkillResponse): string {
  const parameters = found.parameters.map(({ name, type, required }) => `${name}${type ? `: ${type}` : ''}${required ? '' : ', optional'}`);
  const calls = found.dependencies.map(({ name, version }) => `${bareName(name)}@${version}`);
  const parts = [
    found.passed ? 'passed' : `failed: ${found.reason}`,
    list('parameters', parameters),
    list('calls', calls),
    list('evidence', found.evidence),
    found.mutantsMade === 0 ? '' : `${found.mutantsNoticed} of ${plural(found.mutantsMade, 'mutant')} noticed`,
    list('findings', found.findings.map(findingLine)),
  ];
  return parts.filter((part) => part !== '').join('\n');
}
