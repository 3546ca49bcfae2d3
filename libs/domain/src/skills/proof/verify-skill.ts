import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillFinding } from '@etude/contracts/skill-proof';
import type { CodeAnalyser } from '../../ports/code-analyser.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { analyseSkill, secretFindings } from './analyse-skill.js';
import { bundledCode } from './bundle-code.js';
import { contentDigest, hasHiddenTests } from '../content-digest.js';
import { MANY_MUTANTS, NOTHING_FOUND, type ProofFindings, type Stage } from './proof.js';
import { refusalOf } from '../life/call-graph.js';
import { otherKindReason } from '../life/register-skill.js';
import { countMutants, differenceOf, runTrial, type TestPlace, type Trial, type TrialOutcome } from './run-skill-tests.js';
import {
  inspectCode,
  type InspectedCode,
  type Inspection,
  type Mutant,
  MUTANTS_MAX,
  problemTexts,
  undeclaredProblems,
} from './inspect-code.js';
import { compareAlike, keepWhatWorked } from './keep-what-worked.js';
import type { TemplateFor } from '../life/skill-packages.js';
import type { VerificationGround } from './verification-ground.js';
import { pythonCall, pythonText } from '../../python-files.js';

export interface VerificationDeps {
  readonly sandboxes: Sandboxes;
  readonly analyser: CodeAnalyser;
  /** Share of the mutants that the tests have to notice, 0 to 1; one of them in any case, and two where four or more could be made. */
  readonly mutationScoreMin: number;
  readonly ground: VerificationGround;
  /** Which kind of sandbox has these packages; absent: all run in the default one. */
  readonly templateFor?: TemplateFor;
  /** Number of the try, from 1. Within one try every execution happens once, however often it is asked for. */
  readonly attempt?: number;
  /** Raised where the same content is verified again. */
  readonly round?: number;
}

export interface Verification {
  readonly passed: boolean;
  /** What was tried and how it went, one line each. */
  readonly evidence: readonly string[];
  /** Why it did not pass; empty where it did. */
  readonly reason: string;
  /** As the code says; null where it could not be read. */
  readonly contract: SkillContract | null;
  readonly found: ProofFindings;
}

/** Sandboxes come warmed with one of their own; one with this seed is started for the purpose, so only one run asks for it. */
const OTHER_HASH_SEED = 4_242_424_242;

export const NO_GROUND: VerificationGround = { replaced: null, earlier: [], needed: [], dependents: [], similar: [] };

/**
 * Whether a skill may be used, by what can be found without a person: its code is what it declares and holds no secret; its tests pass
 * twice with the same results, the second time under another hash seed and another clock, and fail on copies of the code that were
 * broken on purpose; what worked before works with it. Findings that reject nothing are in the answer.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY (retryable), FAILED_PRECONDITION; an AbortError when `signal` aborts
 * Not in it: whether the skill is what its description says; tests can't tell.
 */
export async function verifySkill(skill: Skill, deps: VerificationDeps, signal: AbortSignal): Promise<Verification> {
  const otherKind = otherKindReason(skill, deps.ground.replaced);
  if (otherKind !== null) return verificationOf([{ evidence: [], reason: otherKind }], null);
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

/** The first stage that has something against the skill gives the reason. */
export function verificationOf(stages: readonly Stage[], contract: SkillContract | null): Verification {
  const reason = stages.find((stage) => stage.reason !== undefined)?.reason ?? '';
  const kept = stages.flatMap(({ found }) => found?.kept ?? []);
  const found = Object.assign({ ...NOTHING_FOUND }, ...stages.map((stage) => stage.found), { kept }) as ProofFindings;
  return { passed: reason === '', reason, evidence: stages.flatMap(({ evidence }) => evidence), contract, found };
}

/**
 * One id for the same execution in the same try. It holds the tenant, since job ids are not kept apart by tenant, and held-out tests,
 * which are not in the digest of a skill.
 */
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

/** The sandbox for whatever runs while it is verified; a stage that failed where none has all the packages. */
function templateOf(
  skill: Skill,
  { templateFor, ground }: VerificationDeps,
): { readonly template?: string } | Required<Pick<Stage, 'reason' | 'evidence'>> {
  const together = [skill, ...ground.needed, ...ground.dependents.map((dependent) => dependent.skill)];
  try {
    const template = templateFor?.([...new Set(together.flatMap(({ packages = [] }) => packages))]);
    return template === undefined ? {} : { template };
  } catch (error) {
    return { evidence: [], reason: refusalOf(error) };
  }
}

/** null: a procedure is somebody's words, not Python. */
async function inspect(skill: Skill, place: TestPlace): Promise<Inspection | null> {
  if (skill.kind === 'procedure') return null;
  const { code, entryPoint, name } = skill;
  const isProgram = entryPoint === null;
  const mutantsMax = skill.kind === 'function' ? MUTANTS_MAX : 0;
  const asked = { code, entryPoint, name, isProgram, mutantsMax };
  return inspectCode(asked, { ...place, executionId: `${place.idPrefix}-parse` }, place.signal);
}

/** null: it holds none. */
function secretStage(findings: readonly SkillFinding[]): Stage | null {
  const [secret] = secretFindings(findings);
  if (secret === undefined) return null;
  const where = secret.line === null ? '' : `line ${secret.line}: `;
  const reason = `the skill holds a secret: ${where}${secret.message}; take it out and revoke it, since it was stored`;
  return { evidence: [], found: { findings: [...findings] }, reason };
}

function lookedAt(skill: Skill, inspected: Inspection | null, findings: readonly SkillFinding[]): Stage {
  const found = { findings: [...findings] };
  const secret = secretStage(findings);
  if (secret !== null) return secret;
  if (inspected === null) return { evidence: ['a procedure is shown, never run', findingText(findings)], found };
  if ('problems' in inspected) {
    const problems = problemTexts(inspected.problems).join('; ');
    return { evidence: [], found, reason: `the code is refused: ${problems}` };
  }
  if (skill.kind === 'snippet' && inspected.kind === 'function')
    return {
      evidence: [],
      found,
      reason: `the code has ${inspected.entryPoint} to call, so it is a function, which needs tests, and no snippet`,
    };
  const evidence = ['the code parses', findingText(findings)];
  if (skill.kind !== 'function') return { evidence: [...evidence, notRunText(skill)], found };
  const reason = declaredOtherwise(skill, inspected);
  return reason === null ? { evidence, found } : { evidence, found, reason };
}

/** Code with nothing to call is a snippet, whatever its author meant, who may have given tests. */
function notRunText({ kind, tests, heldOut = [] }: Skill): string {
  const count = tests.length + heldOut.length;
  const notRun = count === 0 ? '' : `; its tests are not run (${count})`;
  return `a ${kind} is shown, never run${notRun}`;
}

function findingText(findings: readonly SkillFinding[]): string {
  if (findings.length === 0) return 'static analysis found nothing';
  const count = (severity: SkillFinding['severity']) => findings.filter((finding) => finding.severity === severity).length;
  return `static analysis found ${count('error')} errors, ${count('warning')} warnings and ${count('info')} notes`;
}

/** What the record says that the code doesn't; null where they agree. */
function declaredOtherwise(skill: Skill, inspected: InspectedCode): string | null {
  if (inspected.kind === 'snippet') return `${inspected.note}; register it as a snippet`;
  const undeclared = undeclaredProblems(skill.parameters, inspected.contract);
  if (undeclared.length > 0) return `the code is not what is declared: ${undeclared.join('; ')}`;
  const pinned = new Set((skill.dependencies ?? []).map(({ name }) => name));
  const unknown = inspected.uses.filter((name) => !pinned.has(name));
  if (unknown.length > 0)
    return `the code calls skills that it is not pinned to: ${unknown.join(', ')}; register it again, once they are active`;
  if (skill.tests.length === 0) return 'it has no tests';
  const isCalled = [...skill.tests, ...(skill.heldOut ?? [])].some(({ kind }) => kind !== 'io');
  return skill.entryPoint === null && isCalled
    ? 'it is a program and has tests that call a function; give it an entry point, or tests with input and output'
    : null;
}

/** The tests once; then everything else beside each other, since another interpreter takes its time to start. */
async function runStages(skill: Skill, inspected: InspectedCode, deps: VerificationDeps, place: TestPlace): Promise<readonly Stage[]> {
  const { ground, mutationScoreMin } = deps;
  const load = (code: string) => bundledCode(code, ground.needed, skill.dependencies ?? []);
  const trial: Trial = {
    step: 'first',
    code: skill.code,
    entryPoint: inspected.entryPoint,
    tests: skill.tests,
    load,
    isAuthors: !hasHiddenTests(skill),
  };
  const first = await runTrial(trial, place);
  if (!first.passed) return [{ evidence: [], reason: `its tests fail: ${first.reason}` }];
  const stages = [
    testAgain(trial, first, place),
    keepWhatWorked(skill, trial, ground, place),
    noticeMutants(inspected.mutants, trial, first, { place, mutationScoreMin }),
    compareAlike(skill, trial, ground.similar, place),
  ];
  // Nothing goes on behind an answer. The first error in this order is thrown.
  await Promise.allSettled(stages);
  return (await Promise.all(stages)).flat();
}

async function testAgain(trial: Trial, first: TrialOutcome, place: TestPlace): Promise<Stage> {
  const load = (code: string) => underOtherClock(trial.load?.(code) ?? code);
  const second = await runTrial({ ...trial, step: 'second', hashSeed: OTHER_HASH_SEED, load }, place);
  const where = 'under another hash seed and clock';
  if (!second.passed) return { evidence: [], reason: `its tests fail ${where}: ${second.reason}` };
  const difference = differenceOf(trial.tests, first.results, second.results);
  if (difference !== null) return { evidence: [], reason: `its tests give other results ${where}: ${difference}` };
  const testsPassed = trial.tests.length;
  return { evidence: [`its tests pass twice with the same results (${testsPassed})`], found: { testsPassed } };
}

async function noticeMutants(
  mutants: readonly Mutant[],
  trial: Trial,
  { results }: TrialOutcome,
  { place, mutationScoreMin: min }: { place: TestPlace; mutationScoreMin: number },
): Promise<Stage> {
  const { made, noticed, survived } = await countMutants(mutants, trial, results, place);
  const evidence = [`its tests fail on ${noticed} of ${made} mutants`];
  if (survived.length > 0) evidence.push(`not noticed: ${survived.join('; ')}`);
  const stage = { evidence, found: { mutantsMade: made, mutantsNoticed: noticed, mutantsSurvived: [...survived] } };
  const wanted = Math.max(Math.ceil(min * made), made >= MANY_MUTANTS ? 2 : 1);
  if (made === 0) return { ...stage, reason: 'its tests prove nothing: no mutant could be made' };
  if (noticed >= wanted) return stage;
  const which = survived.length === 0 ? '' : `; not noticed: ${survived.join('; ')}`;
  return { ...stage, reason: `its tests notice ${noticed} of ${made} mutants, and at least ${wanted} are wanted${which}` };
}

/** Some seven years, an odd number of days, hours and seconds: another weekday, month and hour, too. */
const AHEAD_S = 222_222_222.25;
const CLOCK = pythonText('other_clock');

/** The code under a clock that is years ahead; its lines keep their numbers. */
export function underOtherClock(code: string): string {
  const file = '__import__("sys")._getframe().f_code.co_filename';
  const move = pythonCall(CLOCK, 'move', [String(AHEAD_S)]);
  return `${move}\nexec(compile(${JSON.stringify(code)}, ${file}, "exec", dont_inherit=True), globals())\n`;
}
