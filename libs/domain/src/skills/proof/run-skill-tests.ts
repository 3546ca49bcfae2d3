import type { SkillTest } from '@etude/contracts/memory';
import { type ExecutionRequest, type RunResult, SandboxLimits, type SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator } from '@etude/contracts/task';
import { sameValue } from '../../evaluation/compare.js';
import { judge } from '../../evaluation/judge.js';
import { rulesOf } from '../../evaluation/evaluators.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import type { Mutant } from './inspect-code.js';

/** The most runs in one execution, so that other requests get sandboxes in between. */
const RUNS_MAX = 200;
/** The most characters of code in one execution. Requests are kept in memory until they have run. */
const CODE_MAX = 8_000_000;

/** The owner of the code, and the prefix of execution ids. An execution with a repeated id returns the first result. */
export interface TestPlace extends Pick<ExecutionRequest, 'tenant' | 'owner' | 'template'> {
  readonly sandboxes: Sandboxes;
  readonly idPrefix: string;
  readonly signal: AbortSignal;
}

export interface Trial {
  /** The trial's part of the execution id, unique within its place. */
  readonly step: string;
  readonly code: string;
  readonly entryPoint: string | null;
  readonly tests: readonly SkillTest[];
  /** Adds the called skills to the code. Lines of the code keep their numbers. */
  readonly load?: (code: string) => string;
  readonly hashSeed?: number;
  readonly limits?: SandboxLimits;
  /** Whether the reader of the outcome wrote these tests. Only then does the reason show calls, expected values and results. */
  readonly isAuthors?: boolean;
}

export interface TrialOutcome {
  readonly passed: boolean;
  /** The first failure, such as "test 2 of 3: wrong answer", with the failed call for an author's own tests. Empty if all tests passed. */
  readonly reason: string;
  readonly results: readonly RunResult[];
}

interface PlannedTest {
  readonly evaluator: Evaluator;
  readonly run: SandboxRun;
}

const LIMITS = SandboxLimits.parse({});
/** Limits for inputs and tests that the code wasn't written for. The code may run endlessly on such an input, for example. */
export const SHORT_LIMITS = SandboxLimits.parse({ cpuMs: 2_000, wallMs: 4_000 });

function planTrial({ code, entryPoint, tests, load = (text) => text }: Omit<Trial, 'step'>): PlannedTest[] {
  return tests.map((test) => {
    const evaluator = evaluatorOf(test, entryPoint);
    const [run] = rulesOf(evaluator).plan(code);
    if (!run) throw new TypeError(`a test of kind "${test.kind}" gives no run`);
    return { evaluator, run: 'code' in run ? { ...run, code: load(run.code) } : run };
  });
}

/**
 * How a test failed. null if the test passed.
 *
 * @param isAuthors if false, only the kind of failure is told. Lines and names of exceptions could reveal a hidden input over many registrations
 * @throws EtudeError SANDBOX_UNAVAILABLE (retryable), CANCELLED
 */
function failureOf({ evaluator, run }: PlannedTest, result: RunResult | undefined, isAuthors = false): string | null {
  const { verdict, reason } = judge(evaluator, [run], result ? [result] : []);
  if (verdict === 'AC') return null;
  return verdict === 'RE' && !isAuthors ? 'it ended with an error' : reason.replace(/^(hidden )?case 1 of 1: /, '');
}

function inExecutions(planned: readonly PlannedTest[]): ReadonlyArray<readonly PlannedTest[]> {
  const longest = Math.max(1, ...planned.map(({ run }) => ('code' in run ? run.code.length : 0)));
  const size = Math.max(1, Math.min(RUNS_MAX, Math.floor(CODE_MAX / longest)));
  return Array.from({ length: Math.ceil(planned.length / size) }, (_, part) => planned.slice(part * size, (part + 1) * size));
}

type Options = Pick<ExecutionRequest, 'limits' | 'hashSeed' | 'stopOnFailure'> & { readonly step: string };

/** Runs the tests in as few executions as possible. Returns the results in order, with undefined for a test not run after a failure. */
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

/** The result of every test, right or wrong. @throws EtudeError as `Sandboxes.execute` */
export async function runTests(trial: Trial, place: TestPlace): Promise<readonly RunResult[]> {
  const { step, limits = LIMITS } = trial;
  const answers = await runPlanned(planTrial(trial), { step, limits, stopOnFailure: false }, place);
  return answers.filter((result) => result !== undefined);
}

/** Runs the tests up to the first failure. @throws EtudeError as `Sandboxes.execute` */
export async function runTrial(trial: Trial, place: TestPlace): Promise<TrialOutcome> {
  const { step, tests, limits = LIMITS, hashSeed, isAuthors = false } = trial;
  const planned = planTrial(trial);
  const seed = hashSeed === undefined ? {} : { hashSeed };
  const answers = await runPlanned(planned, { step, limits, stopOnFailure: true, ...seed }, place);
  const results = answers.filter((result) => result !== undefined);
  for (const [at, test] of planned.entries()) {
    const failure = failureOf(test, answers[at], isAuthors);
    if (failure === null) continue;
    const how = isAuthors ? failedCall(tests[at], answers[at]) : '';
    return { passed: false, reason: `test ${at + 1} of ${tests.length}: ${failure}${how}`, results };
  }
  return { passed: true, reason: '', results };
}

/**
 * The first difference between two runs of the same tests, such as "test 1 of 2: it printed something else", or null. A difference counts even if the
 * test accepts both results. The output of Python tests isn't compared, because it is discarded when they run.
 */
export function differenceOf(tests: Trial['tests'], first: readonly RunResult[], second: readonly RunResult[]): string | null {
  const changes = first.map((run, at) => changeOf(run, second[at]));
  const at = changes.findIndex((change) => change !== null);
  return at < 0 ? null : `test ${at + 1} of ${tests.length}: ${changes[at]}`;
}

function changeOf(run: RunResult, other: RunResult | undefined): string | null {
  if (run.passed !== other?.passed) return 'it passed in one run only';
  const isSame = run.value === undefined ? other?.value === undefined : sameValue(run.value, other?.value, 0);
  if (!isSame) return 'it gave another value';
  return run.stdout === other?.stdout ? null : 'it printed something else';
}

/**
 * Runs the tests on every mutant, in few executions, and returns the mutants that passed all tests. The first test notices most mutants. Later rounds
 * have more tests and run only on the remaining mutants. A mutant that runs out of time or memory counts as noticed.
 *
 * @param results of the tests on the unbroken code, which set the limits of the mutants
 * @throws EtudeError as `Sandboxes.execute`
 */
export async function survivingMutants(
  mutants: readonly Mutant[],
  trial: Omit<Trial, 'step' | 'limits'>,
  results: readonly RunResult[],
  place: TestPlace,
): Promise<readonly Mutant[]> {
  const limits = brokenLimits(results);
  let alive = mutants;
  for (let from = 0, to = 1; from < trial.tests.length && alive.length > 0; from = to, to *= 4) {
    const tests = trial.tests.slice(from, to);
    const planned = alive.flatMap((mutant) => planTrial({ ...trial, code: mutant.code, tests }).map((test) => ({ ...test, mutant })));
    const answers = await runPlanned(planned, { step: `mutants${from}`, limits, stopOnFailure: false }, place);
    const noticed = new Set(planned.filter((test, at) => failureOf(test, answers[at]) !== null).map(({ mutant }) => mutant));
    alive = alive.filter((mutant) => !noticed.has(mutant));
  }
  return alive;
}

function brokenLimits(results: readonly RunResult[]): SandboxLimits {
  const cpuMs = Math.max(0, ...results.map((run) => run.cpuMs));
  const wallMs = Math.max(0, ...results.map((run) => run.wallMs));
  return SandboxLimits.parse({
    cpuMs: Math.round(Math.min(3_000, 250 + cpuMs * 8)),
    wallMs: Math.round(Math.min(6_000, 600 + wallMs * 8)),
  });
}

/** A skill's tests from an evaluator's cases. Empty if the evaluator judges something other than the code's answers. */
export function testsFrom(evaluator: Evaluator): SkillTest[] {
  return rulesOf(evaluator).tests ?? [];
}

/** The inverse of `testsFrom`: an evaluator that judges code by this test. */
export function evaluatorOf(test: SkillTest, entryPoint: string | null): Evaluator {
  if (test.kind === 'io') {
    const { stdin, expectedStdout, comparison, tolerance } = test;
    return { kind: 'io_cases', cases: [{ stdin, expectedStdout, public: false }], comparison, tolerance };
  }
  if (entryPoint === null) throw new TypeError(`a test of kind "${test.kind}" needs an entry point`);
  if (test.kind === 'python') return { kind: 'python_tests', entryPoint, tests: test.tests, setup: test.setup, public: false };
  const { args, kwargs, expected, tolerance } = test;
  return { kind: 'function_cases', entryPoint, cases: [{ args, kwargs, expected, public: false }], tolerance };
}

/**
 * Tests that call a function by the name `called`, changed for code in which it has the name `name`. The alias for the name is defined in the process
 * of the tests, because code that saw the alias could tell whose tests it runs.
 */
export function testsByName(tests: readonly SkillTest[], called: string | null, name: string | null): readonly SkillTest[] {
  if (called === name || called === null || name === null) return tests;
  return tests.map((test) => (test.kind === 'python' ? { ...test, tests: withName(test.tests, `${called} = ${name}\n`) } : test));
}

/** Inserts a line after `from __future__` imports, which Python requires to be first. */
function withName(tests: string, line: string): string {
  const [future = ''] = /^(?:(?:from __future__ import .*|#.*|[ \t]*)\n)*/.exec(tests) ?? [];
  return `${future}${line}${tests.slice(future.length)}`;
}

const SHOWN_MAX = 200;

/**
 * The call of a failed test and its result, to append to a verdict: `; {"args":["a"],"kwargs":{"n":2},"expected":"y"} gave "x"`. Only readers who may
 * see the test get it. Empty for a Python test.
 */
function failedCall(test: SkillTest | undefined, result: RunResult | undefined): string {
  if (test === undefined || test.kind === 'python') return '';
  const { kind, tolerance: _tolerance, ...said } = test;
  const answer = result?.exit === 'ok' ? (kind === 'io' ? result.stdout : result.value) : undefined;
  const got = result?.error?.message ?? answer;
  return `; ${shown(said)}${got === undefined ? '' : ` gave ${shown(got)}`}`;
}

/** The value as JSON on one line, without control characters, which JSON may leave unescaped. */
function shown(value: unknown): string {
  const line = JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ');
  return line.length <= SHOWN_MAX ? line : `${line.slice(0, SHOWN_MAX - 1)}…`;
}
