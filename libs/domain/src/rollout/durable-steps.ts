import { type Limits, type StepKind, type StopReason, type TaskEvent, Usage } from '@etude/contracts/task';
import type { Tracing } from '@etude/contracts/tracing';
import type { Clock } from '../ports/clock.js';
import type { Journal } from '../ports/journal.js';
import { errorCode, EtudeError } from '@etude/contracts/errors';

/** The outcome of a step. Later steps may use only its `value`, because only the value is journaled. */
export interface StepOutcome<Value> {
  readonly value: Value;
  /** One line for people. */
  readonly summary: string;
  readonly usage?: Partial<Usage>;
  readonly scripted?: boolean;
  readonly events?: readonly TaskEvent[];
}

const ASKS_MODEL: ReadonlySet<StepKind> = new Set(['draft', 'critique', 'generate', 'act', 'compact', 'bind', 'wrap', 'learn']);
export type StepLimits = Pick<Limits, 'stepsMax' | 'wallMs' | 'modelTokensMax' | 'costUsdMax'>;

const NO_USAGE = Usage.parse({});

/**
 * The steps of one rollout. Each step is done once: it is journaled before the next step begins, and a later worker reads it from the journal.
 *
 * `usage` is the sum that was stored with the last journaled step, so a step that is read from the journal is not counted twice.
 */
export class DurableSteps {
  #usage: Usage = NO_USAGE;
  #cancelRequested = false;
  #attemptsSeen = new Set<number>();

  constructor(
    private readonly journal: Omit<Journal, 'finish'>,
    private readonly clock: Clock,
    private readonly limits: StepLimits,
    private readonly signal: AbortSignal,
    private readonly tracing: Tracing,
  ) {}

  get usage(): Usage {
    return this.#usage;
  }

  /** Whether an earlier worker journaled any step. */
  get begun(): boolean {
    return this.journal.entries.size > 0;
  }

  /**
   * Returns the journaled outcome of step `key` ("a1.generate"), or does the step and journals it.
   *
   * @throws RolloutStop if a limit is reached or the task was cancelled. Steps of the kind `record` are always done
   * @throws EtudeError JOURNAL_FENCED, and any error of `work`
   */
  async run<Value>(key: string, kind: StepKind, work: () => Promise<StepOutcome<Value>>): Promise<Value> {
    if (this.journal.entries.has(key)) return this.replay(key) as Value;
    if (kind !== 'record') this.#refuseOverLimits(kind);
    return this.tracing.span(`step ${kind}`, { values: { 'etude.step': key } }, () => this.#do(key, kind, work));
  }

  async #do<Value>(key: string, kind: StepKind, work: () => Promise<StepOutcome<Value>>): Promise<Value> {
    const from = this.clock.now();
    const outcome = await work().catch((error: unknown) => {
      if (this.signal.reason instanceof RolloutStop) throw this.signal.reason;
      throw errorCode(error) === 'BUDGET_USED_UP' ? new RolloutStop('budget') : error;
    });
    await this.#append(key, kind, outcome, this.clock.now() - from);
    return outcome.value;
  }

  /** The value of a step that an earlier worker journaled, or undefined if there is none. */
  replay(key: string): unknown {
    const journaled = this.journal.entries.get(key);
    if (!journaled) return undefined;
    this.#usage = journaled.usage;
    this.#attemptsSeen.add(attemptOf(key));
    return journaled.value;
  }

  /** The values of an earlier worker's steps whose keys start with `prefix`, in order. Empty if that worker did not journal the step `key`. */
  journaledUnder(key: string, prefix: string): readonly unknown[] {
    const { entries } = this.journal;
    if (!entries.has(key)) return [];
    return [...entries.values()].filter((entry) => entry.key.startsWith(prefix)).map(({ value }) => value);
  }

  #refuseOverLimits(kind: StepKind): void {
    const { limits } = this;
    const { steps, inputTokens, outputTokens, costUsd } = this.#usage;
    if (this.#cancelRequested) throw new RolloutStop('cancelled');
    this.signal.throwIfAborted();
    if (this.journal.elapsedMs() >= limits.wallMs) throw new RolloutStop('wall_time');
    if (steps >= limits.stepsMax) throw new RolloutStop('steps');
    if (!ASKS_MODEL.has(kind)) return;
    if (inputTokens + outputTokens >= limits.modelTokensMax) throw new RolloutStop('model_tokens');
    if (limits.costUsdMax !== null && costUsd >= limits.costUsdMax) throw new RolloutStop('cost');
  }

  async #append(key: string, kind: StepKind, outcome: StepOutcome<unknown>, durationMs: number): Promise<void> {
    const attempt = attemptOf(key);
    const own: Usage = { ...NO_USAGE, steps: 1, ...outcome.usage };
    const total = Object.entries(this.#usage).map(([name, value]) => [name, value + own[name as keyof Usage]]);
    const usage = Object.fromEntries(total) as Usage;
    const events: TaskEvent[] = [
      { type: 'step', step: key, attempt, kind, summary: outcome.summary, durationMs, usage: own, scripted: outcome.scripted ?? false },
      ...(outcome.events ?? []),
    ];
    if (!this.#attemptsSeen.has(attempt) && !key.startsWith('t.')) events.unshift({ type: 'attempt_started', attempt });
    const { cancelRequested } = await this.journal.append({ key, value: outcome.value, usage }, events);
    this.#attemptsSeen.add(attempt);
    this.#usage = usage;
    this.#cancelRequested ||= cancelRequested;
  }
}

/** The attempt of a step. Steps after the last attempt, such as "t.findings", are reported as attempt 0. */
function attemptOf(key: string): number {
  return Number(/^a(\d+)\./.exec(key)?.[1] ?? 0);
}

/** Ends the loop of attempts with a reason. `runRollout` catches it. Signals abort with this error after a cancellation or the wall time. */
export class RolloutStop extends EtudeError {
  constructor(readonly reason: StopReason) {
    super(reason === 'wall_time' ? 'DEADLINE_EXCEEDED' : 'CANCELLED', `the rollout stops: ${reason}`);
    // Adapters recognise an abort by this name.
    this.name = 'AbortError';
  }
}
