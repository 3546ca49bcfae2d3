import { builtInOf, modelNameOf } from '@etude/contracts/embedder-names';
import { errorCode, EtudeError, isRetryable } from '@etude/contracts/errors';
import type { Reembedding } from '@etude/contracts/memory-upkeep';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/model';
import type { Memory, Progress } from '@etude/memory/memory';
import { type EmbedderConfig, embedderFrom } from '@etude/model/model-config';
import type { JobContext } from '@etude/queue/jobs/consumer';
import { leaseEndOf } from '@etude/queue/jobs/job-end';
import type { UpkeepStore } from '@etude/queue/memory/upkeep-store';

export interface ReembedDeps {
  readonly memory: Pick<Memory, 'upkeep' | 'store'>;
  readonly store: UpkeepStore;
  readonly clock: Clock;
  /** The model that this service searches with. */
  readonly usedModel: string;
  /** Makes an embedder for "sentence", "lexical" or a model of the configured server. */
  readonly embedderOf: (model: string, dimension: number | null) => Promise<Embedder>;
}

/** How often progress is written and a stop is noticed. */
const BEAT_MS = 1_000;

/**
 * Moves all vectors to another model, one worker at a time, until no vector is missing, the move is stopped, or another move replaces it. A
 * repeat continues after the vectors that are done.
 */
export async function moveVectors(id: string, deps: ReembedDeps, context: JobContext): Promise<void> {
  const record = await deps.store.reembedding();
  if (record.id !== id || record.state !== 'running') return;
  const beat = new Beat(record, deps);
  // After an earlier attempt, the vectors to drop may be gone already.
  const isFirst = context.attempt === 1 && context.stalledCount === 0;
  try {
    await moveAll(record, beat, deps, isFirst, AbortSignal.any([context.signal, beat.stopped]));
  } catch (error) {
    if (beat.stopped.aborted) return;
    const isOver = context.isLastAttempt || !isRetryable(error);
    const said = `${errorCode(error)}: ${(error as Error).message}`;
    if (leaseEndOf(context.signal) === null) await beat.put({ error: said, ...(isOver ? { state: 'failed' } : {}) });
    throw error;
  } finally {
    beat.end();
  }
}

async function moveAll(record: Reembedding, beat: Beat, deps: ReembedDeps, isFirst: boolean, signal: AbortSignal): Promise<void> {
  const { memory } = deps;
  const models = await memory.store.models();
  const to = await embedderFor(record, models.find(({ name }) => name === modelNameOf(record.model))?.dimension ?? null, deps);
  const dropModel = record.dropModel === null ? null : modelNameOf(record.dropModel);
  if (dropModel !== null) {
    if (dropModel === deps.usedModel || dropModel === to.profile.model) {
      const message = `the vectors of ${dropModel} can't be dropped: services search with them, or are about to`;
      throw new EtudeError('FAILED_PRECONDITION', message);
    }
    const names = models.map(({ name }) => name);
    if (isFirst && !names.includes(dropModel))
      throw new EtudeError('NOT_FOUND', `memory has no vectors of ${dropModel} to drop, only those of ${names.join(' and ')}`);
  }
  const { state, left } = await memory.upkeep.reembed(to, { signal, onProgress: (progress) => beat.tell(progress) });
  signal.throwIfAborted();
  if (state === 'running') throw new EtudeError('MEMORY_UNAVAILABLE', `${left} records changed during each embedding; the move is retried`);
  if (dropModel !== null) await memory.upkeep.dropModel(dropModel);
  await beat.put({ state: 'ready', error: null });
}

/**
 * @param known dimension of the vectors written so far, the default for a repeat
 * @throws EtudeError INVALID_ARGUMENT naming the choices, where this service can't ask the model
 */
async function embedderFor({ model, dimension }: Reembedding, known: number | null, deps: ReembedDeps): Promise<Embedder> {
  try {
    return await deps.embedderOf(model, dimension ?? known);
  } catch (error) {
    if (builtInOf(model) !== null || isRetryable(error)) throw error;
    const why = `the vectors can't be moved to ${model}: ${(error as Error).message}`;
    throw new EtudeError('INVALID_ARGUMENT', `${why}. Name sentence, lexical, or a model of the embeddings server with --dimension`);
  }
}

/** Writes the progress once a second, and stops the move if its record says so. */
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
    // If Redis is unreachable, the next beat tries again.
    this.#timer = setInterval(() => void (this.#last = this.put({}).catch(() => undefined)), BEAT_MS);
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  tell({ done, total }: Progress): void {
    this.#record = { ...this.#record, done, total, error: null };
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

/** @throws EtudeError FAILED_PRECONDITION where the model's files, key or dimension are missing */
export async function embedderByName(config: EmbedderConfig, model: string, dimension: number | null): Promise<Embedder> {
  // The similarity settings belong to the model in use, so this model doesn't get them.
  const base: EmbedderConfig = {
    ...config,
    ETUDE_EMBEDDING_MODEL: undefined,
    ETUDE_EMBEDDING_DIMENSION: undefined,
    ETUDE_EMBEDDING_DENSE_WEIGHT: undefined,
    ETUDE_EMBEDDING_COSINE_UNRELATED: undefined,
    ETUDE_EMBEDDING_COSINE_SAME_TASK: undefined,
    ETUDE_EMBEDDING_COSINE_SAME_WORDS: undefined,
  };
  const builtIn = builtInOf(model);
  if (builtIn !== null) return embedderFrom({ ...base, ETUDE_EMBEDDER: builtIn });
  return embedderFrom({ ...base, ETUDE_EMBEDDING_MODEL: model, ...(dimension === null ? {} : { ETUDE_EMBEDDING_DIMENSION: dimension }) });
}
