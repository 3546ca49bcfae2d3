import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { Candidate, Candidates, RecordStore, StoreQuery } from '../record-store.js';

/** What search shows, and with `archived` what forgetting took out of it as well. */
export async function candidatesOf(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  query: StoreQuery,
  archived = false,
): Promise<Candidates> {
  const shown = store.search(scope, layer, query);
  if (!archived) return shown;
  const where = { ...query.where, status: 'archived' };
  const [front, back] = await Promise.all([shown, store.search(scope, layer, { ...query, where, shown: false })]);
  return {
    dense: merged(front.dense, back.dense, ({ cosine }) => cosine, query.limit),
    words: merged(front.words, back.words, ({ bm25 }) => bm25, query.limit),
  };
}

function merged(a: readonly Candidate[], b: readonly Candidate[], valueOf: (candidate: Candidate) => number, limit: number) {
  return [...a, ...b].toSorted((x, y) => valueOf(y) - valueOf(x) || y.createdAt - x.createdAt).slice(0, limit);
}
