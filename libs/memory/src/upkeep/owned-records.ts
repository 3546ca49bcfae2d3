import { LAYERS, type Owners, type RecordFilter, type RecordStore, type StoredRecord } from '../record-store.js';
import { type Erasable, ownersOf, partsOf } from './record-parts.js';
import type { MemoryLayer } from '@etude/contracts/task';

/** All records of these owners that the filter accepts, in every layer, page by page. @throws AbortError between pages */
export async function* walkOwned(
  store: RecordStore,
  owners: Owners,
  filter: RecordFilter,
  { layers = LAYERS, signal }: { readonly layers?: readonly MemoryLayer[]; readonly signal?: AbortSignal | undefined } = {},
): AsyncGenerator<readonly StoredRecord[]> {
  for (const layer of layers)
    for await (const page of store.each(owners, layer, filter)) {
      signal?.throwIfAborted();
      yield page;
    }
}

/** Number of records by place, such as "memory.semantic.fact". Places without records are left out. */
export type CountsByPlace = Readonly<Record<string, number>>;

type Bounds = Pick<RecordFilter, 'createdBefore' | 'createdSince'>;

export async function* walkErasable(store: RecordStore, erased: Erasable, bounds: Bounds, signal?: AbortSignal) {
  for (const { layer, kind, ...part } of partsOf(erased))
    for await (const page of store.each(ownersOf(erased), layer, { ...bounds, ...part, kinds: [kind] })) {
      signal?.throwIfAborted();
      yield page;
    }
}

export async function removeOwned(store: RecordStore, erased: Erasable, bounds: Bounds, signal?: AbortSignal): Promise<CountsByPlace> {
  return overParts(erased, (layer, filter) => {
    signal?.throwIfAborted();
    return store.remove(ownersOf(erased), layer, { ...bounds, ...filter });
  });
}

export async function countOwned(store: RecordStore, erased: Erasable, bounds: Bounds): Promise<CountsByPlace> {
  return overParts(erased, (layer, filter) => store.count(ownersOf(erased), layer, { ...bounds, ...filter }));
}

export function addCounts(a: CountsByPlace, b: CountsByPlace): CountsByPlace {
  const sum = { ...a };
  for (const [place, count] of Object.entries(b)) sum[place] = (sum[place] ?? 0) + count;
  return sum;
}

export function totalOf(counts: CountsByPlace): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

async function overParts(erased: Erasable, act: (layer: MemoryLayer, filter: RecordFilter) => Promise<number>): Promise<CountsByPlace> {
  const counts: Record<string, number> = {};
  for (const { layer, kind, ...part } of partsOf(erased)) {
    const count = await act(layer, { ...part, kinds: [kind] });
    if (count > 0) counts[`memory.${layer}.${kind}`] = count;
  }
  return counts;
}
