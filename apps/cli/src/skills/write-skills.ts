import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import {
  type CheckSkillResponse,
  CheckSkillResponseSchema,
  type Skill,
  SkillSchema,
  SkillStatus,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { parseExactJson } from '@etude/contracts/json';
import { status } from '@grpc/grpc-js';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isServiceError } from '../grpc-errors.js';
import { plural } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { ridingOut } from '../sandbox/ride-out.js';
import { type Draft, type DraftOptions, newDraft, nextDraft, readCode } from './skill-draft.js';
import { draftError, failureHint, noteNext } from './skill-hints.js';
import { bareName, doneLine, findingLine, list } from './skill-lines.js';
import { type ReaderOptions, skillReference } from './skill-reference.js';
import { testCase } from './skill-tests.js';

/** Tests, their mutants and those of other skills: more than a single call usually takes. */
const VERIFY_TIMEOUT_MS = 120_000;

export interface AddOptions extends DraftOptions {
  readonly wait?: boolean;
  readonly requestId?: string;
}

const verifySettings = (cli: Cli) => ({ timeoutMs: Math.max(cli.callTimeoutMs, VERIFY_TIMEOUT_MS), signal: cli.signal });

export async function addSkill(cli: Cli, path: string, options: AddOptions): Promise<number> {
  const draft = newDraft(path, await readCode(path), options);
  return drafted(draft, () => withGateway(cli, (gateway) => register(cli, gateway, draft, { ...options, baseVersion: 0 })));
}

/** What is done with a draft; where that is refused, with the flag that would help. */
async function drafted(draft: Draft, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    throw draftError(error, draft);
  }
}

/** The tests of the version before stay, where this key may read them, unless others are given. */
export async function editSkill(cli: Cli, skill: string, path: string, options: AddOptions): Promise<number> {
  const code = await readCode(path);
  return withGateway(cli, async (gateway) => {
    const before = await editedVersion(cli, gateway, skill, options);
    const tests = options.test === undefined && before.testCount > 0 ? await testsOf(cli, gateway, before) : [];
    return register(cli, gateway, nextDraft(before, code, options, tests), { ...options, baseVersion: before.version });
  });
}

/** The one that is named, else the newest: what is edited is what was written last, whether or not it is in use. */
async function editedVersion(cli: Cli, gateway: Gateway, skill: string, { scope, agent, user }: AddOptions): Promise<Skill> {
  const shared = scope === undefined || scope === 'agent' ? undefined : `@${scope}`;
  const owner = shared ?? agent ?? (scope === 'agent' ? 'default' : undefined);
  const reference = skillReference(skill, { ...(owner === undefined ? {} : { agent: owner }), ...(user === undefined ? {} : { user }) });
  if (reference.version > 0) return gateway.skills.getSkill(reference, callSettings(cli));
  const { version: _version, ...named } = reference;
  const [newest] = (await gateway.skills.listSkillVersions(named, callSettings(cli))).skills;
  return newest ?? gateway.skills.getSkill(reference, callSettings(cli));
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
  const skill = await ridingOut(cli.signal, () => gateway.skills.registerSkill(request, wait ? verifySettings(cli) : callSettings(cli)));
  cli.out.status('');
  return settled(cli, skill);
}

/** What became of it, and what to do next. */
function settled(cli: Cli, skill: Skill): number {
  cli.out.data(toJson(SkillSchema, skill), doneLine(skill));
  noteNext(cli, skill);
  return skill.status === SkillStatus.REJECTED ? EXIT.failed : EXIT.ok;
}

export async function checkSkill(cli: Cli, path: string, options: DraftOptions): Promise<number> {
  const skill = newDraft(path, await readCode(path), { ...options, description: options.description ?? 'A draft that is tried.' });
  const check = async (gateway: Gateway) => {
    cli.out.status(`checking ${skill.name} …`);
    const found = await gateway.skills.checkSkill({ skill }, verifySettings(cli));
    cli.out.status('');
    cli.out.data(toJson(CheckSkillResponseSchema, found, { alwaysEmitImplicit: true }), checkText(found));
    const hint = failureHint(found.reason);
    if (hint !== '') cli.out.note(hint);
    return found.passed ? EXIT.ok : EXIT.failed;
  };
  return drafted(skill, () => withGateway(cli, check));
}

function checkText(found: CheckSkillResponse): string {
  const parameters = found.parameters.map(({ name, type, required }) => `${name}${type ? `: ${type}` : ''}${required ? '' : ', optional'}`);
  const calls = found.dependencies.map(({ name, version }) => `${bareName(name)}@${version}`);
  return [
    found.passed ? 'passed' : `failed: ${found.reason}`,
    list('parameters', parameters),
    list('calls', calls),
    list('evidence', found.evidence),
    found.mutantsMade === 0 ? '' : `${found.mutantsNoticed} of ${plural(found.mutantsMade, 'mutant')} noticed`,
    list('findings', found.findings.map(findingLine)),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

export function verifySkill(
  cli: Cli,
  skill: string,
  { requestId = randomUUID(), ...reader }: ReaderOptions & { readonly requestId?: string },
): Promise<number> {
  const request = { ...skillReference(skill, reader), requestId };
  return withGateway(cli, async (gateway) => {
    cli.out.status(`verifying ${skill} …`);
    const verified = await ridingOut(cli.signal, () => gateway.skills.verifySkill(request, verifySettings(cli)));
    cli.out.status('');
    return settled(cli, verified);
  });
}
