import { embedTexts, indexedTextsOf } from '../layers/indexed-texts.js';
import type { Progress, ReembedReport } from '../memory.js';
import { LAYERS, type RecordStore, type StoredRecord } from '../record-store.js';
import { walkOwned } from './owned-records.js';
import type { Embedder } from '@etude/domain/ports/embedder';

export interface ReembedOptions {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

/** Maximum number of passes. A record that changes while it is embedded is left for the next pass. */
const PASSES_MAX = 1_000;

/**
 * Adds the vectors of a model to the records of all tenants. Records that have them are skipped, so a run continues where an earlier one
 * stopped. Once all have them the model is ready, and services can start with it.
 *
 * An abort is no failure: the state is then `running`.
 */
export async function reembedRecords(store: RecordStore, to: Embedder, { onProgress, signal }: ReembedOptions): Promise<ReembedReport> {
  const { model: name, dimension } = to.profile;
  const wasReady = (await store.models()).some((model) => model.name === name && model.state === 'ready');
  await store.addModel({ name, dimension });
  const total = await countLeft(store, name);
  let embedded = 0;
  let left = total;
  try {
    for (let pass = 0; pass < PASSES_MAX && left > 0; pass += 1) {
      for (const tenant of await store.tenants())
        for await (const page of walkOwned(store, { tenant }, { withoutVectorsOf: name }, { signal })) {
          embedded += await fillPage(store, to, page, signal);
          onProgress?.({ done: Math.min(embedded, total), total });
        }
      left = await countLeft(store, name);
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
    left = await countLeft(store, name);
  }
  if (left > 0) return { embedded, left, state: 'running' };
  await store.setModelReady(name);
  onProgress?.({ done: total, total });
  return { embedded, left: 0, state: wasReady && embedded === 0 ? 'finished' : 'ready' };
}

/** @returns how many records got their vectors */
async function fillPage(store: RecordStore, to: Embedder, page: readonly StoredRecord[], signal?: AbortSignal): Promise<number> {
  const texts = page.map(indexedTextsOf);
  const vectors = (await embedTexts(to, texts.flat(), signal)).map(({ vector }) => vector);
  let filled = 0;
  for (const [at, record] of page.entries())
    if (await store.setVectors(record.scope.tenant, record, to.profile.model, vectors.splice(0, texts[at]!.length))) filled += 1;
  return filled;
}

async function countLeft(store: RecordStore, model: string): Promise<number> {
  let left = 0;
  for (const tenant of await store.tenants())
    for (const layer of LAYERS) left += await store.count({ tenant }, layer, { withoutVectorsOf: model });
  return left;
}
