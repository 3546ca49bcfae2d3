import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import {
  type Skill,
  SkillDraftSchema,
  Skills,
  SkillSchema,
  SkillScope,
  SkillStatus,
  type SkillTestCase,
  SkillTestCaseSchema,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { parseExactJson } from '@etude/contracts/json';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { type Entry, fieldsOf, type Flags, hand, plain, REPEAT, skillReference } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { messageOf, readArgument, readJson, readText } from '../files.js';
import { bareName, show } from '../show.js';
import { doneLine, handedInExit, nextNotes, OWNER, READER, SCOPE, VERIFY_TIMEOUT_MS } from './skill-lines.js';

const HINT = [
  'calls: [{"args": [2], "kwargs": {}, "expected": 4}, ...]',
  'programs: [{"stdin": "2\\n", "expected_stdout": "4\\n"}, ...]',
  'or a Python file with assertions that calls the skill by its name',
  'put tests that are run but never shown into another file: --held-out FILE',
];

/** The kind of a test that has this field. */
const KIND_OF: Readonly<Record<string, string>> = {
  expected: 'call',
  expected_stdout: 'program',
  expectedStdout: 'program',
  tests: 'python',
};

export function readTests(path: string): SkillTestCase[] {
  if (/\.py$/i.test(path)) return [testCase({ tests: withCalls(readText(path), path) }, path)];
  const json = readJson(path);
  const cases = Array.isArray(json) ? json : [json];
  if (cases.length === 0) throw new CliError(EXIT.usage, `${path} contains no test`, HINT);
  return cases.map((one: unknown, index) => testCase(one, `${path}[${index}]`));
}

/** Appends a call of each function test_… that is never called. @throws CliError if this function is async or has parameters */
export function withCalls(code: string, path: string): string {
  const calls: string[] = [];
  for (const [, async = '', name = '', parameters = ''] of code.matchAll(/^(async )?def (test_\w*)\s*\(([^)]*)\)/gm)) {
    if ([...code.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length > 1) continue;
    if (async !== '' || parameters.trim() !== '') {
      const message = `${path}: nothing calls ${name}; a test_… function is called automatically only if it is not async and has no parameters`;
      throw new CliError(EXIT.usage, message);
    }
    calls.push(`${name}()\n`);
  }
  return calls.length === 0 ? code : `${code.trimEnd()}\n\n${calls.join('')}`;
}

function testCase(given: unknown, where: string): SkillTestCase {
  const { kind: _kind, ...test } = (typeof given === 'object' && given !== null ? given : {}) as JsonObject;
  const field = Object.keys(KIND_OF).find((one) => one in test);
  if (field === undefined) throw new CliError(EXIT.usage, `${where} is not a test: it has neither "expected" nor "expected_stdout"`, HINT);
  return messageOf(SkillTestCaseSchema, { [KIND_OF[field]!]: test }, where, HINT);
}

type Draft = Exclude<MessageInitShape<typeof SkillDraftSchema>, { readonly $typeName: string }>;

const testFiles = (help: string, field: string) => ({
  help: `${help}; repeatable`,
  field,
  parse: (path: string, before: readonly object[] = []) => [...before, ...readTests(path)],
});

const DRAFT: Flags = {
  '--description <text>': 'description of the skill (default: its docstring, if the skill is new)',
  '--display-name <text>': 'name shown to people',
  '--test <file>': testFiles('file of tests, in JSON or Python', 'tests'),
  '--held-out <file>': testFiles('file of tests that are run but never shown', 'heldOutTests'),
  '--category <path>': 'category, such as text.csv',
  '--tag <tag>': 'repeatable',
  '--example <prompt>': { help: 'example of a prompt that needs the skill; repeatable', field: 'examplePrompts' },
  '--package <name==version>': 'package that the skill needs; repeatable',
  '--source <name>': 'source of the skill, such as documents/ID; repeatable',
  '--entry-point <name>': 'function that is called (default: found in the code)',
  '--program': { help: 'the code is a program that reads stdin and writes stdout', field: 'isProgram' },
  '--kind <kind>': { help: 'kind of the skill (default: function)', choices: ['function', 'snippet', 'procedure'] },
};
const NEW_DRAFT: Flags = { ...DRAFT, ...OWNER, '--name <name>': 'name, of small letters, digits and "_" (default: the name of the file)' };
const WAIT: Flags = { '--wait': 'wait for the end of verification' };

interface RegisterOptions {
  readonly wait?: boolean;
  readonly requestId?: string;
}

const readCode = async (path: string): Promise<string> => (path === '-' ? readArgument('-') : readText(path));

/** The first paragraph of the first docstring in triple quotes; '' if there is none. */
export function docstringOf(code: string): string {
  const text = /("""|''')([\s\S]*?)\1/.exec(code)?.[2]?.trim() ?? '';
  return text.split(/\n\s*\n/, 1)[0]?.replaceAll(/\s*\n\s*/g, ' ') ?? '';
}

/** The skill name for a file: "parse_csv" for "lib/Parse-CSV.py". */
export function nameOfFile(path: string): string {
  return basename(path)
    .replace(/\.py$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^[^a-z]+|_+$/g, '');
}

export function newDraft(path: string, code: string, given: Draft): Draft {
  const name = given.name ?? (path === '-' ? '' : nameOfFile(path));
  if (name === '') throw new CliError(EXIT.usage, 'the skill has no name; pass --name NAME');
  const description = given.description ?? docstringOf(code);
  if (description === '') throw new CliError(EXIT.usage, `${path} has no docstring; pass --description TEXT`);
  return { ...given, name, description, code, agent: given.agent ?? 'default', kind: given.kind ?? 'function' };
}

/** A shared skill belongs to its scope, so its owner ("@tenant") is not an agent. */
function ownerOf({ scope, agent, user }: Skill): Pick<Draft, 'scope' | 'agent' | 'user'> {
  if (scope === SkillScope.UNSPECIFIED || scope === SkillScope.AGENT) return { scope: SkillScope.AGENT, agent, user };
  return { scope, agent: '', user: scope === SkillScope.USER ? user : '' };
}

/** The draft of the next version, for the same owner and scope. Fields that aren't given stay. @param tests of the previous version */
export function nextDraft(skill: Skill, code: string, given: Draft, tests: Draft['tests'] = []): Draft {
  const { description, displayName, entryPoint, tags, category, examplePrompts, packages, sources, kind } = skill;
  const before: Draft = { description, displayName, entryPoint, tests, tags, category, examplePrompts, packages, sources, kind };
  const isProgram = given.isProgram ?? (kind === 'function' && entryPoint === '' && given.entryPoint === undefined);
  const called = isProgram ? { isProgram, entryPoint: '' } : { isProgram };
  return { ...before, ...given, ...called, ...ownerOf(skill), name: bareName(skill.name), code };
}

/** Registers the next version. Without new tests, the previous tests stay; only a reviewer's key may read them. */
async function editSkill(cli: Cli, options: RegisterOptions, [skill = '', path = '']: readonly string[]): Promise<number> {
  const code = await readCode(path);
  const given = (await fieldsOf(SkillDraftSchema, { ...DRAFT, ...READER }, options)) as Draft;
  return withGateway(cli, async (gateway) => {
    const before = await editedVersion(cli, gateway, skill, given);
    const { name, agent, user, version } = before;
    const keepsTests = given.tests === undefined && before.testCount > 0;
    const { tests } = keepsTests ? await gateway.skills.getSkillReview({ name, agent, user, version }, callSettings(cli)) : { tests: [] };
    const kept = tests.map((text, index) => testCase(parseExactJson(text), `test ${index + 1} of ${bareName(name)}`));
    return register(cli, gateway, nextDraft(before, code, given, kept), { ...options, baseVersion: version });
  });
}

/** The named version, else the newest version, even if it is not active. */
async function editedVersion(cli: Cli, { skills }: Gateway, skill: string, { agent = '', user = '' }: Draft): Promise<Skill> {
  const asked = { ...skillReference(skill), agent, user };
  if (asked.version > 0) return skills.getSkill(asked, callSettings(cli));
  const [newest] = (await skills.listSkillVersions(asked, callSettings(cli))).skills;
  return newest ?? skills.getSkill(asked, callSettings(cli));
}

async function register(
  cli: Cli,
  gateway: Gateway,
  draft: Draft,
  { baseVersion, wait = false, requestId = randomUUID() }: RegisterOptions & { readonly baseVersion: number },
): Promise<number> {
  const request = { skill: draft, baseVersion, requestId, wait };
  if (wait) cli.out.status(`verifying ${draft.name} …`);
  const skill = await ridingOut(cli.signal, () => gateway.skills.registerSkill(request, callSettings(cli, wait ? VERIFY_TIMEOUT_MS : 0)));
  cli.out.status('');
  show(cli.out, SkillSchema, skill, doneLine(skill));
  for (const note of nextNotes(cli, skill)) cli.out.note(note);
  return handedInExit([skill]);
}

export const WRITING: readonly Entry[] = [
  hand<RegisterOptions>({
    command: 'add <file>',
    help: 'register a skill from a file; - reads stdin',
    flags: { ...NEW_DRAFT, ...REPEAT, ...SCOPE, ...WAIT },
    fills: SkillDraftSchema,
    run: async (cli, options, [path = '']) => {
      const given = await fieldsOf(SkillDraftSchema, { ...NEW_DRAFT, ...SCOPE }, options);
      const draft = newDraft(path, await readCode(path), given);
      return withGateway(cli, (gateway) => register(cli, gateway, draft, { ...options, baseVersion: 0 }));
    },
  }),
  hand<RegisterOptions>({
    command: 'edit <skill> <file>',
    help: 'register the next version with this code; - reads stdin. Other fields stay unless a flag changes them',
    flags: { ...DRAFT, ...READER, ...REPEAT, ...WAIT },
    fills: SkillDraftSchema,
    run: editSkill,
  }),
  plain(Skills.method.checkSkill, {
    command: 'test <file>',
    help: 'verify a skill without storing it',
    flags: NEW_DRAFT,
    fills: SkillDraftSchema,
    ask: async (_request, { options, args: [path = ''] }) => {
      const given = await fieldsOf(SkillDraftSchema, NEW_DRAFT, options);
      return { skill: newDraft(path, await readCode(path), { description: 'A draft under test.', ...given }) };
    },
    leastMs: VERIFY_TIMEOUT_MS,
    status: ([path = '']) => `checking ${path} …`,
    exit: ({ passed }) => (passed ? EXIT.ok : EXIT.failed),
  }),
  plain(Skills.method.verifySkill, {
    command: 'verify <skill>',
    help: 'verify a version again',
    flags: READER,
    leastMs: VERIFY_TIMEOUT_MS,
    status: ([skill = '']) => `verifying ${skill} …`,
    text: doneLine,
    notes: (skill, { cli }) => nextNotes(cli, skill),
    exit: ({ status: now }) => (now === SkillStatus.REJECTED ? EXIT.failed : EXIT.ok),
  }),
];
