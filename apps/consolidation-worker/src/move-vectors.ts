import { errorCode, EtudeError, isRetryable } from '@etude/contracts/errors';
import type { Reembedding } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { Progress } from '@etude/memory/layers/memory-upkeep';
import type { Memory } from '@etude/memory/memory';
import type { JobContext } from '@etude/queue/consumer';
import { leaseEndOf } from '@etude/queue/lease';
import type { UpkeepStore } from '@etude/queue/upkeep-store';

export interface ReembedDeps {
  readonly memory: Pick<Memory, 'upkeep'>;
  readonly store: UpkeepStore;
  readonly clock: Clock;
  /** Model that this service searches with. */
  readonly usedModel: string;
  /** "sentence", "lexical" or the name of a model of the configured server. */
  readonly embedderOf: (model: string, dimension: number | null) => Promise<Embedder>;
}

/** How often progress is written, and a stop is seen. */
const BEAT_MS = 1_000;

/**
 * Moves all vectors to another model, one worker at a time, until none is missing, it is stopped, or another move has taken its
 * place. Repeating it goes on behind what was embedded.
 */
export async function moveVectors(id: string, deps: ReembedDeps, context: JobContext): Promise<void> {
  const record = await deps.store.reembedding();
  if (record.id !== id || record.state !== 'running') return;
  const beat = new Beat(record, deps);
  try {
    await moveAll(record, beat, deps, AbortSignal.any([context.signal, beat.stopped]));
  } catch (error) {
    if (beat.stopped.aborted) return;
    if (leaseEndOf(context.signal) === null && (context.isLastAttempt || !isRetryable(error)))
      await beat.put({ state: 'failed', error: `${errorCode(error)}: ${(error as Error).message}` });
    throw error;
  } finally {
    beat.end();
  }
}

async function moveAll(record: Reembedding, beat: Beat, deps: ReembedDeps, signal: AbortSignal): Promise<void> {
  const { usedModel, memory } = deps;
  const to = await deps.embedderOf(record.model, record.dimension);
  const { dropModel } = record;
  if (dropModel !== null && (dropModel === usedModel || dropModel === to.profile.model))
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `the vectors of ${dropModel} are not dropped: ${dropModel === usedModel ? 'this service searches by them; start all services with the new model first' : 'they are those that are asked for'}`,
    );
  const { state, left } = await memory.upkeep.reembed(to, { signal, onProgress: (progress) => beat.tell(progress) });
  signal.throwIfAborted();
  if (state === 'running')
    throw new EtudeError('MEMORY_UNAVAILABLE', `${left} records were changed each time that they were embedded; it is tried again`);
  if (dropModel !== null) await memory.upkeep.dropModel(dropModel);
  await beat.put({ state: 'ready', error: null });
}

/** Writes how far it is, once a second, and learns so whether it shall go on. */
class Beat {
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #record: Reembedding;
  #last: Promise<void> = Promise.resolve();

  constructor(
    record: Reembedding,
    private readonly deps: ReembedDeps,
  ) {
    this.#record = record;
    // Redis away: the next beat tries again.
    this.#timer = setInterval(() => void (this.#last = this.put({}).catch(() => undefined)), BEAT_MS);
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  tell({ done, total }: Progress): void {
    this.#record = { ...this.#record, done, total };
  }

  async put(change: Partial<Reembedding>): Promise<void> {
    await this.#last;
    this.#record = { ...this.#record, ...change, updatedAt: this.deps.clock.now() };
    if (!(await this.deps.store.putReembedding(this.#record))) this.#stop.abort();
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
