import { builtInOf, modelNameOf } from '@etude/contracts/embedder-names';
import { errorCode, EtudeError, isRetryable } from '@etude/contracts/errors';
import type { Reembedding } from '@etude/contracts/memory-upkeep';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/model';
import type { Memory } from '@etude/memory/memory';
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

/** Moves all vectors to another model, until no vector is missing, or the move is stopped or replaced. A repeat continues after the last vector. */
export async function moveVectors(id: string, deps: ReembedDeps, context: JobContext): Promise<void> {
  let record = await deps.store.reembedding();
  if (record.id !== id || record.state !== 'running') return;
  const stop = new AbortController();
  const put: Put = async (change) => {
    record = { ...record, ...change, updatedAt: deps.clock.now() };
    if (!(await deps.store.putReembedding(record))) stop.abort();
  };
  try {
    await moveAll(record, put, deps, AbortSignal.any([context.signal, stop.signal]));
  } catch (error) {
    if (stop.signal.aborted) return;
    if (leaseEndOf(context.signal) === null) await put({ error: `${errorCode(error)}: ${(error as Error).message}` });
    throw error;
  }
}

/** Stores a change of the record. If the move was stopped or replaced, aborts this worker's work on it. */
type Put = (change: Partial<Reembedding>) => Promise<void>;

async function moveAll(record: Reembedding, put: Put, deps: ReembedDeps, signal: AbortSignal): Promise<void> {
  const { memory } = deps;
  const models = await memory.store.models();
  const to = await embedderFor(record, models.find(({ name }) => name === modelNameOf(record.model))?.dimension ?? null, deps);
  const dropModel = record.dropModel === null ? null : modelNameOf(record.dropModel);
  if (dropModel === deps.usedModel || dropModel === to.profile.model) {
    const message = `the vectors of ${dropModel} can't be dropped: services use this model, or will after the move; name another model to drop`;
    throw new EtudeError('FAILED_PRECONDITION', message);
  }
  const { state, left } = await memory.upkeep.reembed(to, { signal, onProgress: (progress) => put({ ...progress, error: null }) });
  signal.throwIfAborted();
  if (state === 'running') throw new EtudeError('MEMORY_UNAVAILABLE', `${left} records changed during each embedding; the move is retried`);
  if (dropModel !== null) await memory.upkeep.dropModel(dropModel);
  await put({ state: 'ready', error: null });
}

/** @param known dimension of the vectors written so far. @throws EtudeError INVALID_ARGUMENT if this service can't use the model */
async function embedderFor({ model, dimension }: Reembedding, known: number | null, deps: ReembedDeps): Promise<Embedder> {
  try {
    return await deps.embedderOf(model, dimension ?? known);
  } catch (error) {
    if (builtInOf(model) !== null || isRetryable(error)) throw error;
    const why = `the vectors can't be moved to ${model}: ${(error as Error).message}`;
    throw new EtudeError('INVALID_ARGUMENT', `${why}. Name sentence, lexical, or a model of the embeddings server with --dimension`);
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
