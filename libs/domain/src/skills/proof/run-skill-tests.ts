import type { SkillTest } from '@etude/contracts/memory';
import { type ExecutionRequest, type RunResult, SandboxLimits, type SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator } from '@etude/contracts/task';
import { sameValue } from '../../evaluation/compare.js';
import { judge } from '../../evaluation/judge.js';
import { rulesOf } from '../../evaluation/evaluators.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { evaluatorOf, failedCall } from './skill-tests.js';
import type { Mutant } from './inspect-code.js';

/** Runs of one execution: few enough to leave the sandboxes to others in between. */
const RUNS_MAX = 200;
/** Characters of code in one execution; requests are kept in memory until they ran. */
const CODE_MAX = 8_000_000;

/** Whose code runs, and the start of its executions' ids: the same id again answers with the first result. */
export interface TestPlace extends Pick<ExecutionRequest, 'tenant' | 'owner' | 'template'> {
  readonly sandboxes: Sandboxes;
  readonly idPrefix: string;
  readonly signal: AbortSignal;
}

/** Code under tests. */
export interface Trial {
  /** Tells it from the other trials of the same place. */
  readonly step: string;
  readonly code: string;
  readonly entryPoint: string | null;
  readonly tests: readonly SkillTest[];
  /** Brings in what the code calls; lines keep their numbers. */
  readonly load?: (code: string) => string;
  readonly hashSeed?: number;
  readonly limits?: SandboxLimits;
  /** Whoever hears of the outcome wrote these tests: the reason says what was called, expected and got. */
  readonly isAuthors?: boolean;
}

export interface TrialOutcome {
  readonly passed: boolean;
  /** "test 2 of 3: wrong answer", and of the author's own how; empty where all passed. */
  readonly reason: string;
  readonly results: readonly RunResult[];
}

/** One test of a trial as the sandbox runs it. */
interface PlannedTest {
  readonly evaluator: Evaluator;
  readonly run: SandboxRun;
}

const LIMITS = SandboxLimits.parse({});

function planTrial({ code, entryPoint, tests, load = (text) => text }: Omit<Trial, 'step'>): PlannedTest[] {
  return tests.map((test) => {
    const evaluator = evaluatorOf(test, entryPoint);
    const [run] = rulesOf(evaluator).plan(code);
    if (!run) throw new TypeError(`a test of kind "${test.kind}" gives no run`);
    return { evaluator, run: 'code' in run ? { ...run, code: load(run.code) } : run };
  });
}

/**
 * null where it passed, else how it did not.
 *
 * @param isAuthors of other tests nothing is told but of which kind the failure is: whoever registers code as often as they like would read
 *   what went in from the lines and names of its exceptions, a few bits each time
 * @throws EtudeError SANDBOX_UNAVAILABLE (retryable), CANCELLED
 */
function failureOf({ evaluator, run }: PlannedTest, result: RunResult | undefined, isAuthors = false): string | null {
  const { verdict, reason } = judge(evaluator, [run], result ? [result] : []);
  if (verdict === 'AC') return null;
  return verdict === 'RE' && !isAuthors ? 'it ended with an error' : reason.replace(/^(hidden )?case 1 of 1: /, '');
}

/** Parts that fit into one execution each, in order. */
function inExecutions(planned: readonly PlannedTest[]): readonly PlannedTest[][] {
  const parts: PlannedTest[][] = [];
  let size = 0;
  for (const one of planned) {
    const length = 'code' in one.run ? one.run.code.length : 0;
    const last = parts.at(-1);
    size = last === undefined || last.length >= RUNS_MAX || size + length > CODE_MAX ? length : size + length;
    if (last === undefined || size === length) parts.push([one]);
    else last.push(one);
  }
  return parts;
}

type Options = Pick<ExecutionRequest, 'limits' | 'hashSeed' | 'stopOnFailure'> & { readonly step: string };

/** Results in the order of the tests, in as few executions as they fit into; undefined for tests behind the failure where it stopped. */
async function runPlanned(
  planned: readonly PlannedTest[],
  { step, ...options }: Options,
  { sandboxes, idPrefix, signal, ...whose }: TestPlace,
): Promise<ReadonlyArray<RunResult | undefined>> {
  const results: Array<RunResult | undefined> = [];
  for (const [number, part] of inExecutions(planned).entries()) {
    const executionId = `${idPrefix}-${step}${number === 0 ? '' : `.${number}`}`;
    const request = { ...whose, ...options, executionId, files: [], runs: part.map(({ run }) => run) };
    const { runs } = await sandboxes.execute(request, signal);
    results.push(...part.map((_, at) => runs[at]));
    if (runs.length < part.length) break;
  }
  return results;
}

/** All tests, until the first that fails. @throws EtudeError as `Sandboxes.execute` */
export async function runTrial(trial: Trial, place: TestPlace): Promise<TrialOutcome> {
  const { step, tests, limits = LIMITS, hashSeed, isAuthors = false } = trial;
  const planned = planTrial(trial);
  const seed = hashSeed === undefined ? {} : { hashSeed };
  const answers = await runPlanned(planned, { step, limits, stopOnFailure: true, ...seed }, place);
  const results = answers.filter((result) => result !== undefined);
  for (const [at, test] of planned.entries()) {
    const failure = failureOf(test, answers[at], isAuthors);
    if (failure === null) continue;
    const how = isAuthors ? failedCall(trial, tests[at], answers[at]) : '';
    return { passed: false, reason: `test ${at + 1} of ${tests.length}: ${failure}${how}`, results };
  }
  return { passed: true, reason: '', results };
}

/**
 * What the same tests gave otherwise a second time, such as "test 1 of 2: it printed something else", also where a test would take
 * either; null where all is the same. Prints of tests in Python are thrown away where they run.
 */
export function differenceOf(tests: Trial['tests'], first: readonly RunResult[], second: readonly RunResult[]): string | null {
  const changes = first.map((run, at) => changeOf(run, second[at]));
  const at = changes.findIndex((change) => change !== null);
  return at < 0 ? null : `test ${at + 1} of ${tests.length}: ${changes[at]}`;
}

function changeOf(run: RunResult, other: RunResult | undefined): string | null {
  if (run.passed !== other?.passed) return 'it did not end the same';
  const isSame = run.value === undefined ? other?.value === undefined : sameValue(run.value, other?.value, 0);
  if (!isSame) return 'it gave another value';
  return run.stdout === other?.stdout ? null : 'it printed something else';
}

export interface MutantsNoticed {
  readonly made: number;
  readonly noticed: number;
  /** What was broken in those that passed all tests. */
  readonly survived: readonly string[];
}

/** The first test notices most; the others run on what it left. */
const ROUNDS = [1, 3, 16] as const;

/**
 * Runs the tests on every broken copy, in few executions. Running out of time or memory is noticed, too.
 *
 * @param results of the tests on the code as it is: what they took sets what a copy may take
 * @throws EtudeError as `Sandboxes.execute`
 */
export async function countMutants(
  mutants: readonly Mutant[],
  trial: Omit<Trial, 'step' | 'limits'>,
  results: readonly RunResult[],
  place: TestPlace,
): Promise<MutantsNoticed> {
  const limits = brokenLimits(results);
  let alive = [...mutants];
  let from = 0;
  for (let round = 0; from < trial.tests.length && alive.length > 0; round += 1) {
    const to = from + (ROUNDS[round] ?? 100);
    const tests = trial.tests.slice(from, to);
    const failing = await Promise.all(inLanes(alive).map((lane, number) => failingMutants(lane, `mutants${round}.${number}`, tests)));
    const noticed = new Set(failing.flat());
    alive = alive.filter((mutant) => !noticed.has(mutant));
    from = to;
  }
  return { made: mutants.length, noticed: mutants.length - alive.length, survived: alive.map(({ what }) => what) };

  async function failingMutants(lane: readonly Mutant[], step: string, tests: Trial['tests']): Promise<readonly Mutant[]> {
    const planned = lane.flatMap((mutant) => planTrial({ ...trial, code: mutant.code, tests }).map((test) => ({ ...test, mutant })));
    const answers = await runPlanned(planned, { step, limits, stopOnFailure: false }, place);
    return planned.filter((test, at) => failureOf(test, answers[at]) !== null).map(({ mutant }) => mutant);
  }
}

/** Two executions at the same time: a broken copy may well run until its time is up. */
function inLanes(mutants: readonly Mutant[]): ReadonlyArray<readonly Mutant[]> {
  const half = Math.ceil(mutants.length / 2);
  return [mutants.slice(0, half), mutants.slice(half)];
}

/** A copy gets some times what the code needed, and enough where that was next to nothing. */
function brokenLimits(results: readonly RunResult[]): SandboxLimits {
  const cpuMs = Math.max(0, ...results.map((run) => run.cpuMs));
  const wallMs = Math.max(0, ...results.map((run) => run.wallMs));
  return SandboxLimits.parse({
    cpuMs: Math.round(Math.min(3_000, 250 + cpuMs * 8)),
    wallMs: Math.round(Math.min(6_000, 600 + wallMs * 8)),
  });
}
