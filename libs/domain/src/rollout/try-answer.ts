import type { ExecutionResult, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { verdictText } from '@etude/contracts/task';
import { rulesOf } from '../evaluation/evaluators.js';
import { judge, type Judgement, judgeWithoutCode, ranToTheEnd } from '../evaluation/judge.js';
import { type Attempt, transitionOf } from './attempt-record.js';
import { keepEpisode, mayTeach } from './learn-from-rollout.js';
import type { RolloutContext } from './rollout-context.js';

/** If the sandbox is lost, the answer is executed again in a new sandbox. This is the maximum number of executions. */
const EXECUTIONS_MAX = 3;

export interface Ran {
  readonly runs: readonly SandboxRun[];
  readonly results: readonly RunResult[];
}

interface TryOptions {
  /** Writes further records about the attempt, under ids of their own, in the journaled step that records the attempt. */
  readonly alsoRecord: (attempt: Attempt, ran: Ran) => Promise<void>;
  /** Puts the skills that the code calls in front of the code. The attempt stores the code without these skills. */
  readonly load: (code: string) => string;
  /** The judgement if there is no code. Default: the result of `judgeWithoutCode`. */
  readonly judgement?: Judgement;
  readonly template?: string | undefined;
}

/** Executes an answer, judges it, adds it to `context.attempts` and records it. @param code null if there is none. Then no sandbox is used */
export async function tryAnswer(
  context: RolloutContext,
  said: Omit<Attempt, 'judgement' | 'at' | 'code'>,
  code: string | null,
  { alsoRecord, load, template, judgement = judgeWithoutCode(context.spec.evaluator) }: TryOptions,
): Promise<Attempt> {
  const { evaluator } = context.spec;
  const planned = code === null ? [] : rulesOf(evaluator).plan(code);
  const runs = planned.map((run) => ('code' in run ? { ...run, code: load(run.code) } : run));
  const results = code === null ? [] : (await execute(context, said.attempt, load(code), runs, template)).runs;
  const judged = await evaluate(context, said, () => (code === null ? judgement : judge(evaluator, runs, results)));
  const attempt: Attempt = { ...said, code: code ?? '', ...judged };
  context.attempts.push(attempt);
  await record(context, attempt, () => alsoRecord(attempt, { runs, results }));
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
    // The first failing run decides the verdict. Without this stop, a thousand cases that all time out would take hours.
    stopOnFailure: rules.cases !== undefined,
    runs,
    ...(template === undefined ? {} : { template }),
  };
  return steps.run(key, 'execute', async () => {
    for (let execution = 1; ; execution += 1) {
      const executionId = `${rolloutId}.${key}${execution === 1 ? '' : `.${execution}`}`;
      const value = await deps.sandboxes.execute({ executionId, ...request }, signal);
      if (ranToTheEnd(value.runs) || execution === EXECUTIONS_MAX) {
        // Throws if the infrastructure failed. Such a failure must not be journaled as the step's outcome.
        judge(spec.evaluator, runs, value.runs);
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

/** Records an attempt, unless the task's memory is read-only. Failed attempts and those at a limit are recorded too. */
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
      // The episode is written together with the last transition, so that the end of the task needn't wait for another write.
      ...(isLast ? [keepEpisode(context, 'solved')] : []),
    ]);
    return { value: { writeId }, summary: 'the transition is stored' };
  });
}
