import { embedTexts, indexedTextsOf } from '../layers/indexed-texts.js';
import type { Progress, ReembedReport } from '../memory.js';
import type { RecordStore, StoredRecord } from '../record-store.js';
import { LAYERS, OWNED_KINDS } from './owned-records.js';
import type { Embedder } from '@etude/domain/ports/embedder';

export interface ReembedOptions {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

interface Run extends ReembedOptions {
  readonly store: RecordStore;
  readonly to: Embedder;
  readonly total: number;
  embedded: number;
}

/** Characters that are embedded in one call, or one record's where that has more. */
const BATCH_CHARS = 200_000;
const BATCH_RECORDS = 64;
/** A record that is changed while it is embedded comes again in the next pass. */
const PASSES_MAX = 1_000;

/**
 * Fills the vectors of a model for all tenants. What has them already is passed over, so that a run goes on where the one before it was
 * stopped or killed. Ready is said once nothing is without: the services of that model can be started then.
 *
 * An abort is no failure: it answers with state `running`.
 */
export async function reembedRecords(store: RecordStore, to: Embedder, options: ReembedOptions): Promise<ReembedReport> {
  const { model: name, dimension } = to.profile;
  const wasReady = (await store.models()).some((model) => model.name === name && model.state === 'ready');
  await store.addModel({ name, dimension });
  const run: Run = { ...options, store, to, total: await searchableRecords(store), embedded: 0 };
  try {
    for (let pass = 0; pass < PASSES_MAX; pass += 1) if ((await onePass(run)) === 0) break;
    const left = await countLeft(run);
    if (left > 0) return { embedded: run.embedded, left, state: 'running' };
  } catch (error) {
    if (options.signal?.aborted !== true) throw error;
    return { embedded: run.embedded, left: await countLeft({ ...run, signal: undefined }), state: 'running' };
  }
  await store.setModelReady(name);
  options.onProgress?.({ done: run.total, total: run.total });
  return { embedded: run.embedded, left: 0, state: wasReady && run.embedded === 0 ? 'finished' : 'ready' };
}

/** @returns how many records were looked at: 0 where none is without vectors */
async function onePass(run: Run): Promise<number> {
  let looked = 0;
  for await (const page of withoutVectors(run))
    for (const batch of batchesOf(page)) {
      run.signal?.throwIfAborted();
      looked += batch.length;
      await fillBatch(run, batch);
      run.onProgress?.({ done: Math.min(run.embedded, run.total), total: run.total });
    }
  return looked;
}

async function fillBatch(run: Run, batch: readonly Texts[]): Promise<void> {
  const indexed = await embedTexts(
    run.to,
    batch.flatMap(({ texts }) => texts),
    run.signal,
  );
  let next = 0;
  for (const { record, texts } of batch) {
    const vectors = indexed.slice(next, (next += texts.length)).map(({ vector }) => vector);
    if (await run.store.setVectors(record.scope.tenant, record, run.to.profile.model, vectors)) run.embedded += 1;
  }
}

interface Texts {
  readonly record: StoredRecord;
  readonly texts: readonly string[];
}

function* batchesOf(page: readonly StoredRecord[]): Generator<readonly Texts[]> {
  let batch: Texts[] = [];
  let chars = 0;
  for (const record of page) {
    const texts = indexedTextsOf(record);
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    if (batch.length > 0 && (batch.length === BATCH_RECORDS || chars + length > BATCH_CHARS)) {
      yield batch;
      [batch, chars] = [[], 0];
    }
    batch.push({ record, texts });
    chars += length;
  }
  if (batch.length > 0) yield batch;
}

async function* withoutVectors({ store, to, signal }: Pick<Run, 'store' | 'to' | 'signal'>): AsyncGenerator<readonly StoredRecord[]> {
  for (const tenant of await store.tenants())
    for (const layer of LAYERS)
      for await (const page of store.withoutVectors({ tenant }, layer, to.profile.model)) {
        signal?.throwIfAborted();
        yield page;
      }
}

async function countLeft(run: Run): Promise<number> {
  let left = 0;
  for await (const page of withoutVectors(run)) left += page.length;
  return left;
}

async function searchableRecords(store: RecordStore): Promise<number> {
  const kinds = OWNED_KINDS.filter(({ kind }) => kind !== 'applied' && kind !== 'document');
  let total = 0;
  for (const tenant of await store.tenants())
    for (const { layer, kind } of kinds) total += await store.count({ tenant }, layer, { kinds: [kind] });
  return total;
}
