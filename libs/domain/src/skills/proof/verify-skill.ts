import { Buffer } from 'node:buffer';
import type { Skill } from '@etude/contracts/memory';
import { SECRET_RULE_PREFIX, type SkillContract, type SkillFinding } from '@etude/contracts/skill-proof';
import type { CodeAnalyser } from '../../ports/verification.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { bundledCode } from './bundle-code.js';
import { contentDigest, hasHiddenTests } from '../content-digest.js';
import { MANY_MUTANTS, NOTHING_FOUND, type ProofFindings, type Stage } from './proof.js';
import { refusalOf } from '../life/call-graph.js';
import { otherKindReason } from '../life/register-skill.js';
import { differenceOf, runTrial, survivingMutants, type TestPlace, type Trial, type TrialOutcome } from './run-skill-tests.js';
import type { InspectedCode, Inspection, Mutant } from './inspect-code.js';
import { inspectCode, MUTANTS_MAX, problemTexts, undeclaredProblems } from './inspect-code.js';
import { answerNewInputs } from './new-inputs.js';
import { compareAlike, keepWhatWorked, type VerificationGround } from './keep-what-worked.js';
import type { TemplateFor } from '../life/skill-packages.js';
import { pythonCall, pythonText } from '../../python-files.js';

export interface VerificationDeps {
  readonly sandboxes: Sandboxes;
  readonly analyser: CodeAnalyser;
  /** The share of mutants that the tests must notice, 0 to 1. At least one mutant must be noticed, and at least two of four or more. */
  readonly mutationScoreMin: number;
  readonly ground: VerificationGround;
  /** Chooses the kind of sandbox by the packages. If absent, the default kind is used. */
  readonly templateFor?: TemplateFor;
  /** Number of the attempt, from 1. Executions are repeated in a new attempt, but not within one attempt. */
  readonly attempt?: number;
  /** A higher number verifies the same content again. Default: 1. */
  readonly round?: number;
}

export interface Verification {
  readonly passed: boolean;
  readonly evidence: readonly string[];
  /** Why the skill did not pass. Empty if it passed. */
  readonly reason: string;
  /** The contract that was read from the code. null if it could not be read. */
  readonly contract: SkillContract | null;
  readonly found: ProofFindings;
}

/** The hash seed of the second test run. Warm sandboxes have another seed, so this run starts a sandbox of its own. */
const OTHER_HASH_SEED = 4_242_424_242;

/**
 * Decides without a person whether a skill may be used. Its code must match the declaration and hold no secret. Its tests must pass twice with equal
 * results, the second time with another hash seed and clock, and fail on mutants. Tests of earlier versions and of callers must pass. A shared skill
 * must answer new inputs, too. The result includes findings that don't reject the skill.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY (retryable), FAILED_PRECONDITION; an AbortError when `signal` aborts
 *
 * Not checked: whether the description is true.
 */
export async function verifySkill(skill: Skill, deps: VerificationDeps, signal: AbortSignal): Promise<Verification> {
  const otherKind = otherKindReason(skill, deps.ground.replaced);
  if (otherKind !== null) return verificationOf([{ reason: otherKind }], null);
  const template = templateOf(skill, deps);
  if ('reason' in template) return verificationOf([template], null);
  const place = { ...placeOf(skill, deps), ...template, signal };
  const [inspected, findings] = await Promise.all([inspect(skill, place), analyseSkill(skill, deps.analyser, signal)]);
  const looked = lookedAt(skill, inspected, findings);
  const contract = inspected === null || 'problems' in inspected ? null : inspected.contract;
  if (looked.reason !== undefined || skill.kind !== 'function' || contract === null) return verificationOf([looked], contract);
  const stages = await runStages(skill, inspected as InspectedCode, deps, place);
  return verificationOf([looked, ...stages], contract);
}

export function verificationOf(stages: readonly Stage[], contract: SkillContract | null): Verification {
  const reason = stages.find((stage) => stage.reason !== undefined)?.reason ?? '';
  const kept = stages.flatMap(({ found }) => found?.kept ?? []);
  const found = Object.assign({ ...NOTHING_FOUND }, ...stages.map((stage) => stage.found), { kept }) as ProofFindings;
  return { passed: reason === '', reason, evidence: stages.flatMap(({ evidence = [] }) => evidence), contract, found };
}

/** Equal executions of one attempt get equal ids. The ids cover tenant and held-out tests, which the digest of a skill omits. */
function placeOf(skill: Skill, { sandboxes, ground, attempt = 1, round = 1 }: VerificationDeps): Omit<TestPlace, 'signal'> {
  const { scope, name, version, digest, code } = skill;
  const heldOut = [skill.heldOut ?? [], ground.replaced?.heldOut ?? []];
  const content = contentDigest([scope.tenant, scope.agent, scope.user, name, version, digest, code, heldOut]).slice(0, 32);
  return {
    sandboxes,
    tenant: scope.tenant,
    owner: { agent: scope.agent, user: scope.user },
    idPrefix: `verify-${content}-${round}.${attempt}`,
  };
}

function templateOf(
  skill: Skill,
  { templateFor, ground }: VerificationDeps,
): { readonly template?: string } | Required<Pick<Stage, 'reason'>> {
  const together = [skill, ...ground.needed, ...ground.dependents.map((dependent) => dependent.skill)];
  try {
    const template = templateFor?.([...new Set(together.flatMap(({ packages = [] }) => packages))]);
    return template === undefined ? {} : { template };
  } catch (error) {
    return { reason: refusalOf(error) };
  }
}

/** Inspects the skill's code. null for a procedure, which is not Python. */
async function inspect(skill: Skill, place: TestPlace): Promise<Inspection | null> {
  if (skill.kind === 'procedure') return null;
  const { code, entryPoint, name, kind } = skill;
  const asked = { code, entryPoint, name, isProgram: entryPoint === null, mutantsMax: kind === 'function' ? MUTANTS_MAX : 0 };
  return inspectCode(asked, { ...place, executionId: `${place.idPrefix}-parse` }, place.signal);
}

function lookedAt(skill: Skill, inspected: Inspection | null, findings: readonly SkillFinding[]): Stage {
  const found = { findings: [...findings] };
  const reason = reasonBeforeRun(skill, inspected, findings);
  if (reason !== null) return { found, reason };
  const parsed = inspected === null ? [] : ['the code parses'];
  const shown = skill.kind === 'function' ? [] : [`a ${skill.kind} is shown, never run`];
  return { evidence: [...parsed, findingText(findings), ...shown], found };
}

/** Why the skill is refused before its code is run. null if it is accepted so far. */
function reasonBeforeRun(skill: Skill, inspected: Inspection | null, findings: readonly SkillFinding[]): string | null {
  const secret = findings.find(({ rule }) => rule.startsWith(SECRET_RULE_PREFIX));
  if (secret !== undefined) {
    const where = secret.line === null ? '' : `line ${secret.line}: `;
    return `the skill holds a secret: ${where}${secret.message}; take it out and revoke it, because it was stored`;
  }
  if (inspected === null) return null;
  if ('problems' in inspected) return `the code is refused: ${problemTexts(inspected.problems).join('; ')}`;
  if (skill.kind === 'function') return declaredOtherwise(skill, inspected);
  if (inspected.kind !== 'function') return null;
  return `the code defines the function ${inspected.entryPoint}; register it as a function with tests, not as a snippet`;
}

function findingText(findings: readonly SkillFinding[]): string {
  if (findings.length === 0) return 'static analysis found nothing';
  const count = (severity: SkillFinding['severity']) => findings.filter((finding) => finding.severity === severity).length;
  return `static analysis found ${count('error')} errors, ${count('warning')} warnings and ${count('info')} notes`;
}

function declaredOtherwise(skill: Skill, inspected: InspectedCode): string | null {
  if (inspected.kind === 'snippet') return `${inspected.note}; register it as a snippet`;
  const undeclared = undeclaredProblems(skill.parameters, inspected.contract);
  if (undeclared.length > 0) return `the code differs from its declaration: ${undeclared.join('; ')}`;
  const pinned = new Set((skill.dependencies ?? []).map(({ name }) => name));
  const unknown = inspected.uses.filter((name) => !pinned.has(name));
  if (unknown.length > 0)
    return `the code calls skills that it is not pinned to: ${unknown.join(', ')}; register it again when these skills are active`;
  if (skill.tests.length === 0) return 'it has no tests';
  const all = [...skill.tests, ...(skill.heldOut ?? [])];
  if (skill.entryPoint === null && all.some(({ kind }) => kind !== 'io'))
    return 'it is a program and has tests that call a function; give it an entry point, or tests with input and output';
  return skill.entryPoint !== null && all.some(({ kind }) => kind === 'io')
    ? `it is the function ${skill.entryPoint} and has tests that run a program; give it tests that call the function`
    : null;
}

/** Runs the tests once. Then runs all other stages at the same time, because another interpreter starts slowly. */
async function runStages(skill: Skill, inspected: InspectedCode, deps: VerificationDeps, place: TestPlace): Promise<readonly Stage[]> {
  const { ground, mutationScoreMin } = deps;
  const { code, tests, dependencies = [] } = skill;
  const { entryPoint } = inspected;
  const load = (text: string) => bundledCode(text, ground.needed, dependencies);
  const trial: Trial = { step: 'first', code, entryPoint, tests, load, isAuthors: !hasHiddenTests(skill) };
  const first = await runTrial(trial, place);
  if (!first.passed) return [{ reason: `its tests fail: ${first.reason}` }];
  const stages = [
    testAgain(trial, first, place),
    keepWhatWorked(skill, trial, ground, place),
    noticeMutants(inspected.mutants, trial, first, { place, mutationScoreMin }),
    answerNewInputs(skill, trial, place),
    compareAlike(trial, ground.similar, place),
  ];
  // Waits for all stages, so that no stage goes on after the answer. Throws the error of the first failed stage in this order.
  await Promise.allSettled(stages);
  return (await Promise.all(stages)).flat();
}

async function testAgain(trial: Trial, first: TrialOutcome, place: TestPlace): Promise<Stage> {
  const load = (code: string) => underOtherClock(trial.load?.(code) ?? code);
  const second = await runTrial({ ...trial, step: 'second', hashSeed: OTHER_HASH_SEED, load }, place);
  const where = 'under another hash seed and clock';
  if (!second.passed) return { reason: `its tests fail ${where}: ${second.reason}` };
  const difference = differenceOf(trial.tests, first.results, second.results);
  if (difference !== null) return { reason: `its tests give other results ${where}: ${difference}` };
  const testsPassed = trial.tests.length;
  return { evidence: [`its tests pass twice with the same results (${testsPassed})`], found: { testsPassed } };
}

async function noticeMutants(
  mutants: readonly Mutant[],
  trial: Trial,
  { results }: TrialOutcome,
  { place, mutationScoreMin: min }: { place: TestPlace; mutationScoreMin: number },
): Promise<Stage> {
  const survived = (await survivingMutants(mutants, trial, results, place)).map(({ what }) => what);
  const made = mutants.length;
  const noticed = made - survived.length;
  const which = survived.length === 0 ? [] : [`not noticed: ${survived.join('; ')}`];
  const evidence = [`its tests fail on ${noticed} of ${made} mutants`, ...which];
  const stage = { evidence, found: { mutantsMade: made, mutantsNoticed: noticed, mutantsSurvived: survived } };
  const wanted = Math.max(Math.ceil(min * made), made >= MANY_MUTANTS ? 2 : 1);
  if (made === 0) return { ...stage, reason: 'its tests prove nothing: no mutant could be made' };
  if (noticed >= wanted) return stage;
  const few = `its tests notice ${noticed} of ${made} mutants, and at least ${wanted} are required`;
  return { ...stage, reason: [few, ...which].join('; ') };
}

/** How far the other clock is ahead: about seven years, in s. Weekday, month and hour differ too. */
const AHEAD_S = 222_222_222.25;
const CLOCK = pythonText('other_clock');

/** The code under a clock that is years ahead. Lines of the code keep their numbers. */
function underOtherClock(code: string): string {
  const file = '__import__("sys")._getframe().f_code.co_filename';
  const move = pythonCall(CLOCK, 'move', [String(AHEAD_S)]);
  return `${move}\nexec(compile(${JSON.stringify(code)}, ${file}, "exec", dont_inherit=True), globals())\n`;
}

const WORDS = ['description', 'displayName', 'category', 'tags', 'examplePrompts', 'parameters', 'metadata'] as const;

type Analysed = Pick<Skill, 'kind' | 'code' | 'tests'> & Partial<Skill>;

/**
 * Analyses a skill's code, tests, descriptions and files. Python code is analysed as Python. Tests, descriptions, other files and a procedure's code
 * are only searched for secrets. A finding outside the code names its place in the message and has no line.
 *
 * @throws every error of the analyser
 */
export async function analyseSkill(skill: Analysed, analyser: CodeAnalyser, signal: AbortSignal): Promise<readonly SkillFinding[]> {
  const { kind, code, tests, heldOut = [], files = [] } = skill;
  const found = [...(await analyser.analyse(code, signal, kind === 'procedure' ? 'text' : 'python'))];
  const all = [...tests, ...heldOut];
  if (all.length > 0) found.push(...placed('tests', await analyser.analyse(JSON.stringify(all, null, 1), signal, 'text')));
  // Keeps line breaks, because some keys are recognised by them.
  const words = [...WORDS.map((field) => skill[field]), files.map(({ path }) => path)];
  const said = words.map((value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1))).join('\n');
  found.push(...placed('its words', await analyser.analyse(said, signal, 'text')));
  for (const { path, contentBase64 } of files) {
    const text = Buffer.from(contentBase64, 'base64').toString('utf8');
    // Binary files are skipped, because they hold no readable key.
    if (text.includes('\0')) continue;
    const isTest = path.startsWith('tests/');
    found.push(...placed(path, await analyser.analyse(text, signal, path.endsWith('.py') && !isTest ? 'python' : 'text')));
  }
  return found;
}

function placed(place: string, findings: readonly SkillFinding[]): SkillFinding[] {
  return findings.map((finding) => ({
    ...finding,
    line: null,
    message: `${place}${finding.line === null ? '' : `, line ${finding.line}`}: ${finding.message}`,
  }));
}
