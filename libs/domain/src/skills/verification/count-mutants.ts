import { type RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import type { Mutant } from './inspect-code.js';
import { executePart, failureOf, inExecutions, planTrial, type PlannedTest, type TestPlace, type Trial } from './run-skill-tests.js';

export interface MutantsNoticed {
  readonly made: number;
  readonly noticed: number;
  /** What was broken in those that passed all tests. */
  readonly survived: readonly string[];
}

/** The first test notices most; the others run on what it left. */
const ROUNDS = [1, 3, 16] as const;
/** Executions at the same time: a broken copy may well run until its time is up. */
const LANES = 2;

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
  signal: AbortSignal,
): Promise<MutantsNoticed> {
  const limits = brokenLimits(results);
  let alive = [...mutants];
  let from = 0;
  for (let round = 0; from < trial.tests.length && alive.length > 0; round += 1) {
    const to = from + (ROUNDS[round] ?? 100);
    const tests = trial.tests.slice(from, to);
    const planned = alive.flatMap((mutant) => planTrial({ ...trial, code: mutant.code, tests }).map((test) => ({ ...test, mutant })));
    const failing = await failingMutants(planned, { step: `mutants${round + 1}`, limits }, place, signal);
    alive = alive.filter((mutant) => !failing.has(mutant));
    from = to;
  }
  return { made: mutants.length, noticed: mutants.length - alive.length, survived: alive.map(({ what }) => what) };
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

type MutantTest = PlannedTest & { readonly mutant: Mutant };

async function failingMutants(
  planned: readonly MutantTest[],
  { step, limits }: { step: string; limits: SandboxLimits },
  place: TestPlace,
  signal: AbortSignal,
): Promise<ReadonlySet<Mutant>> {
  const failing = new Set<Mutant>();
  const lane = async (tests: readonly MutantTest[], number: number) => {
    let at = 0;
    for (const part of inExecutions(tests)) {
      const answers = await executePart(place, `${step}.${number}.${at}`, part, { limits, stopOnFailure: false }, signal);
      for (const [index, test] of part.entries()) if (failureOf(test, answers[index]) !== null) failing.add(test.mutant);
      at += part.length;
    }
  };
  const half = Math.ceil(planned.length / LANES);
  const lanes = Array.from({ length: LANES }, (_, number) => planned.slice(number * half, (number + 1) * half));
  await Promise.all(lanes.map((tests, number) => lane(tests, number)));
  return failing;
}
