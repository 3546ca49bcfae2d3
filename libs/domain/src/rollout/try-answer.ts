import type { ExecutionResult, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { judge, type Judgement, judgeWithoutCode, ranToTheEnd } from '../evaluation/judge.js';
import { planFiles, planRuns, stopOnFailure } from '../evaluation/evaluators.js';
import { type Attempt, transitionOf } from './attempt-record.js';
import { keepSolved } from './learn-from-rollout.js';
import type { RolloutContext } from './rollout-context.js';

/** Further executions, each in a new sandbox, where one was lost under the code. */
const EXECUTIONS_MAX = 3;

interface Judged {
  readonly judgement: Judgement;
  /** Ms since 1970. */
  readonly at: number;
}

/** More for memory, under ids of its own, before the attempt counts as recorded. */
type AlsoRecord = (attempt: Attempt, ran: Ran) => Promise<void>;

/** What was run, and what came of it. */
export interface Ran {
  readonly runs: readonly SandboxRun[];
  readonly results: readonly RunResult[];
}

interface TryOptions {
  readonly alsoRecord?: AlsoRecord;
  /** The model's answer ended at a limit of length. */
  readonly cutOff?: boolean;
  /** Brings in what the code calls; the attempt keeps the code without it. */
  readonly load?: (code: string) => string;
  /** Which kind of sandbox it needs. */
  readonly template?: string;
}

/**
 * Executes an answer, judges it and records the attempt: the second half of every attempt. Adds it to `context.attempts`.
 *
 * @param code null: the answer held none, which is judged without a sandbox
 */
export async function tryAnswer(
  context: RolloutContext,
  said: Omit<Attempt, 'judgement' | 'at' | 'code'>,
  code: string | null,
  { alsoRecord, cutOff = false, load = (text) => text, template }: TryOptions = {},
): Promise<Attempt> {
  const runs = code === null ? [] : planRuns(context.spec.evaluator, code).map((run) => loaded(run, load));
  const results = code === null ? null : await execute(context, said.attempt, load(code), runs, template);
  const { judgement, at } = await evaluate(context, said, () =>
    withCutOff(results === null ? judgeWithoutCode(context.spec.evaluator) : judge(context.spec.evaluator, runs, results.runs), cutOff),
  );
  const attempt: Attempt = { ...said, code: code ?? '', judgement, at };
  context.attempts.push(attempt);
  await record(context, attempt, alsoRecord && (() => alsoRecord(attempt, { runs, results: results?.runs ?? [] })));
  return attempt;
}

function loaded(run: SandboxRun, load: (code: string) => string): SandboxRun {
  return 'code' in run ? { ...run, code: load(run.code) } : run;
}

/** A failure that may come of a lost end has to say so: neither the code nor the critique shows it. */
function withCutOff(judgement: Judgement, cutOff: boolean): Judgement {
  if (!cutOff || judgement.verdict === 'AC') return judgement;
  const note = 'the answer was cut off at the limit of its length';
  return {
    ...judgement,
    reason: `${judgement.reason}; ${note}`,
    feedback: `${judgement.feedback}\n\nNote: ${note}. Write a shorter one.`.trim(),
  };
}

function execute(
  context: RolloutContext,
  attempt: number,
  code: string,
  runs: SandboxRun[],
  template: string | undefined,
): Promise<ExecutionResult> {
  const { steps, spec, tenant, rolloutId, deps, signal } = context;
  const key = `a${attempt}.execute`;
  const files = [...spec.files, ...planFiles(spec.evaluator, code)];
  const stop = stopOnFailure(spec.evaluator);
  return steps.run(key, 'execute', async () => {
    for (let execution = 1; ; execution += 1) {
      const executionId = `${rolloutId}.${key}${execution === 1 ? '' : `.${execution}`}`;
      const value = await deps.sandboxes.execute(
        {
          executionId,
          tenant,
          files,
          limits: spec.limits.sandbox,
          stopOnFailure: stop,
          runs,
          ...(template === undefined ? {} : { template }),
        },
        signal,
      );
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
): Promise<Judged> {
  return steps.run(`a${attempt}.evaluate`, 'evaluate', () => {
    const judgement = judged();
    const { verdict, reason, casesPassed, casesTotal } = judgement;
    return Promise.resolve({
      value: { judgement, at: deps.clock.now() },
      summary: `${verdict}: ${reason}`,
      usage: { attempts: attempt === 0 ? 0 : 1 },
      events: [{ type: 'attempt_finished', attempt, verdict, reason, casesPassed, casesTotal, skill }] as const,
    });
  });
}

/** Always, success or not, and also when a limit was reached meanwhile; nothing where the policy says to write nothing. */
async function record(context: RolloutContext, attempt: Attempt, alsoRecord: (() => Promise<void>) | undefined): Promise<void> {
  if (context.spec.memory.readOnly) return;
  const { steps, deps, tenant, rolloutId } = context;
  const key = `a${attempt.attempt}.record`;
  await steps.run(key, 'record', async () => {
    const writeId = `${rolloutId}.a${attempt.attempt}.transition`;
    const before = context.attempts.slice(0, context.attempts.indexOf(attempt));
    const transition = transitionOf(context, attempt, before);
    await Promise.all([deps.outbox.put(tenant, writeId, { kind: 'transition', transition }), alsoRecord?.(), keepSolved(context)]);
    return { value: { writeId }, summary: 'the transition is kept' };
  });
}
