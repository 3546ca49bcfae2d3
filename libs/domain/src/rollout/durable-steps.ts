import { type Limits, type StepKind, type StopReason, type TaskEvent, Usage } from '@etude/contracts/task';
import type { Clock } from '../ports/clock.js';
import type { Journal } from '../ports/journal.js';
import { EtudeError } from '@etude/contracts/errors';

/** What a step did. `value` is all that later steps may use: after a crash it is all there is. */
export interface StepOutcome<Value> {
  readonly value: Value;
  /** One line for people. */
  readonly summary: string;
  readonly usage?: Partial<Usage>;
  readonly scripted?: boolean;
  /** Told to watchers behind the step itself. */
  readonly events?: readonly TaskEvent[];
}

const ASKS_MODEL: ReadonlySet<StepKind> = new Set(['draft', 'critique', 'generate', 'bind', 'summary', 'reflection', 'distil']);
const NO_USAGE = Usage.parse({});

/**
 * The steps of one rollout, each done once: journaled before the next begins, and answered from the journal afterwards.
 *
 * `usage` counts what was journaled, so that replayed steps are not counted twice.
 */
export class DurableSteps {
  #usage: Usage = NO_USAGE;
  #cancelRequested = false;
  #attemptsSeen = new Set<number>();

  constructor(
    private readonly journal: Journal,
    private readonly clock: Clock,
    private readonly limits: Limits,
    private readonly signal: AbortSignal,
  ) {}

  get usage(): Usage {
    return this.#usage;
  }

  /** Whether any step was journaled before this worker came. */
  get begun(): boolean {
    return this.journal.entries.size > 0;
  }

  /**
   * The journaled outcome of step `key` ("a1.generate"), else does the step and journals it.
   *
   * @throws RolloutStop where a limit is reached or the task was cancelled; a `record` is made in any case
   * @throws EtudeError JOURNAL_FENCED; whatever `work` throws
   */
  async run<Value>(key: string, kind: StepKind, work: () => Promise<StepOutcome<Value>>): Promise<Value> {
    if (this.journal.entries.has(key)) return this.replay(key) as Value;
    if (kind !== 'record') this.#refuseOverLimits(kind);
    const from = this.clock.now();
    const outcome = await work().catch((error: unknown) => {
      throw this.signal.reason instanceof RolloutStop ? this.signal.reason : error;
    });
    await this.#append(key, kind, outcome, this.clock.now() - from);
    return outcome.value;
  }

  /** The outcome of a step that an earlier worker journaled; undefined where there is none. */
  replay(key: string): unknown {
    const journaled = this.journal.entries.get(key);
    if (!journaled) return undefined;
    this.#usage = journaled.usage;
    this.#attemptsSeen.add(attemptOf(key));
    return journaled.value;
  }

  #refuseOverLimits(kind: StepKind): void {
    const { limits } = this;
    const { steps, inputTokens, outputTokens, costUsd } = this.#usage;
    if (this.#cancelRequested) throw new RolloutStop('cancelled');
    this.signal.throwIfAborted();
    if (this.clock.now() - this.journal.startedAt >= limits.wallMs) throw new RolloutStop('wall_time');
    if (steps >= limits.stepsMax) throw new RolloutStop('steps');
    if (!ASKS_MODEL.has(kind)) return;
    if (inputTokens + outputTokens >= limits.modelTokensMax) throw new RolloutStop('model_tokens');
    if (limits.costUsdMax !== null && costUsd >= limits.costUsdMax) throw new RolloutStop('cost');
  }

  async #append(key: string, kind: StepKind, outcome: StepOutcome<unknown>, durationMs: number): Promise<void> {
    const attempt = attemptOf(key);
    const own: Usage = { ...NO_USAGE, ...outcome.usage, steps: 1 };
    const usage = sum(this.#usage, own);
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

/** Steps after the loop ("t.summary") belong to no attempt; they are told as attempt 0. */
function attemptOf(key: string): number {
  return Number(/^a(\d+)\./.exec(key)?.[1] ?? 0);
}

function sum(a: Usage, b: Usage): Usage {
  const keys = Object.keys(a) as Array<keyof Usage>;
  return Object.fromEntries(keys.map((key) => [key, a[key] + b[key]])) as Usage;
}

/**
 * Ends the attempts loop with a typed reason; what was learned so far is kept. Never leaves `runRollout`. Also for
 * `AbortController.abort`: somebody cancelled the task, or its wall time is over.
 */
export class RolloutStop extends EtudeError {
  constructor(readonly reason: StopReason) {
    super(reason === 'wall_time' ? 'DEADLINE_EXCEEDED' : 'CANCELLED', `the rollout stops: ${reason}`);
    // As every abort is named, so that adapters know it for one.
    this.name = 'AbortError';
  }
}
