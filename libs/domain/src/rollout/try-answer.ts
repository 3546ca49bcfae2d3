import type { ExecutionResult, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { verdictText } from '@etude/contracts/task';
import { rulesOf } from '../evaluation/evaluators.js';
import { judge, type Judgement, judgeWithoutCode, ranToTheEnd } from '../evaluation/judge.js';
import { type Attempt, transitionOf } from './attempt-record.js';
import { keepEpisode, mayTeach } from './learn-from-rollout.js';
import type { RolloutContext } from './rollout-context.js';

/** How often an answer is executed, each time in a new sandbox, if the sandbox is lost. */
const EXECUTIONS_MAX = 3;

export interface Ran {
  readonly runs: readonly SandboxRun[];
  readonly results: readonly RunResult[];
}

interface TryOptions {
  /** Records more about the attempt, under ids of its own, before the attempt counts as recorded. */
  readonly alsoRecord?: (attempt: Attempt, ran: Ran) => Promise<void>;
  /** Adds the functions that the code calls; the attempt keeps the code without them. */
  readonly load?: (code: string) => string;
  /** The judgement of an answer without code; absent: the usual one for an answer without code. */
  readonly judgement?: Judgement;
  /** The sandbox template to run in; undefined: the default one. */
  readonly template?: string | undefined;
}

/**
 * The second half of every attempt: executes an answer, judges it, adds it to `context.attempts` and records it.
 *
 * @param code null: the answer held no code, which is judged without a sandbox
 */
export async function tryAnswer(
  context: RolloutContext,
  said: Omit<Attempt, 'judgement' | 'at' | 'code'>,
  code: string | null,
  { alsoRecord, load = (text) => text, template, judgement = judgeWithoutCode(context.spec.evaluator) }: TryOptions = {},
): Promise<Attempt> {
  const { evaluator } = context.spec;
  const planned = code === null ? [] : rulesOf(evaluator).plan(code);
  const runs = planned.map((run) => ('code' in run ? { ...run, code: load(run.code) } : run));
  const results = code === null ? [] : (await execute(context, said.attempt, load(code), runs, template)).runs;
  const judged = await evaluate(context, said, () => (code === null ? judgement : judge(evaluator, runs, results)));
  const attempt: Attempt = { ...said, code: code ?? '', ...judged };
  context.attempts.push(attempt);
  await record(context, attempt, async () => alsoRecord?.(attempt, { runs, results }));
  return attempt;
}

function execute(
  { steps, spec, tenant, rolloutId, deps, signal }: RolloutContext,
  attempt: number,
  code: string,
  runs: SandboxRun[],
  template: string | undefined,
): Promise<ExecutionResult> {
  const key = `a${attempt}.execute`;
  const rules = rulesOf(spec.evaluator);
  const request = {
    tenant,
    files: [...spec.files, ...(rules.files?.(code) ?? [])],
    limits: spec.limits.sandbox,
    // The first crash decides the verdict, and a thousand cases that each time out would take hours.
    stopOnFailure: rules.cases !== undefined,
    runs,
    ...(template === undefined ? {} : { template }),
  };
  return steps.run(key, 'execute', async () => {
    for (let execution = 1; ; execution += 1) {
      const executionId = `${rolloutId}.${key}${execution === 1 ? '' : `.${execution}`}`;
      const value = await deps.sandboxes.execute({ executionId, ...request }, signal);
      if (ranToTheEnd(value.runs) || execution === EXECUTIONS_MAX) {
        judge(spec.evaluator, runs, value.runs); // throws where the infrastructure failed: that must not be journaled as an outcome
        return { value, summary: summaryOf(value, runs.length), usage: { executions: execution } };
      }
    }
  });
}

function summaryOf({ runs }: ExecutionResult, planned: number): string {
  const cpuMs = runs.reduce((total, run) => total + run.cpuMs, 0);
  const failed = runs.find((run) => run.exit !== 'ok');
  const end = failed ? `, ended by ${failed.exit === 'nonzero' ? `exit code ${failed.exitCode}` : failed.exit}` : '';
  return `${runs.length} of ${planned} runs in ${Math.round(cpuMs)} ms of CPU${end}`;
}

function evaluate(
  { steps, deps }: RolloutContext,
  { attempt, skill }: Pick<Attempt, 'attempt' | 'skill'>,
  judged: () => Judgement,
): Promise<Pick<Attempt, 'judgement' | 'at'>> {
  return steps.run(`a${attempt}.evaluate`, 'evaluate', async () => {
    const judgement = judged();
    const { verdict, reason, casesPassed, casesTotal } = judgement;
    return {
      value: { judgement, at: deps.clock.now() },
      summary: `${verdictText(judgement)}: ${reason}`,
      usage: { attempts: attempt === 0 ? 0 : 1 },
      events: [{ type: 'attempt_finished', attempt, verdict, reason, casesPassed, casesTotal, skill }],
    };
  });
}

/** Records every attempt, successful or not, even after a limit was reached. Not if the task's memory is read-only. */
async function record(context: RolloutContext, attempt: Attempt, alsoRecord: () => Promise<void>): Promise<void> {
  if (context.spec.memory.readOnly) return;
  const { steps, deps, tenant, rolloutId, attempts } = context;
  await steps.run(`a${attempt.attempt}.record`, 'record', async () => {
    const writeId = `${rolloutId}.a${attempt.attempt}.transition`;
    const transition = transitionOf(context, attempt, attempts.slice(0, attempts.indexOf(attempt)));
    const isLast = attempt.judgement.verdict === 'AC' && !mayTeach(context, 'solved');
    await Promise.all([
      deps.outbox.put(tenant, writeId, { kind: 'transition', transition }),
      alsoRecord(),
      // With the last transition, so that the task's end needn't wait for another write.
      ...(isLast ? [keepEpisode(context, 'solved')] : []),
    ]);
    return { value: { writeId }, summary: 'the transition is stored' };
  });
}
