import {
  LAYERS,
  type Owners,
  RECORD_KINDS,
  type RecordFilter,
  type RecordKind,
  type RecordStore,
  type StoredRecord,
} from '../record-store.js';
import type { MemoryLayer } from '@etude/contracts/task';

/** All layers and kinds with data of owners: all but erasure marks. */
export const OWNED_KINDS: ReadonlyArray<{ readonly layer: MemoryLayer; readonly kind: RecordKind }> = LAYERS.flatMap((layer) =>
  RECORD_KINDS[layer].filter((kind) => kind !== 'erasure').map((kind) => ({ layer, kind })),
);

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

export async function removeOwned(
  store: RecordStore,
  owners: Owners,
  filter: Pick<RecordFilter, 'createdBefore' | 'createdSince'>,
  signal?: AbortSignal,
): Promise<CountsByPlace> {
  return overKinds((layer, kind) => {
    signal?.throwIfAborted();
    return store.remove(owners, layer, { ...filter, kinds: [kind] });
  });
}

export async function countOwned(
  store: RecordStore,
  owners: Owners,
  filter: Pick<RecordFilter, 'createdBefore' | 'createdSince'>,
): Promise<CountsByPlace> {
  return overKinds((layer, kind) => store.count(owners, layer, { ...filter, kinds: [kind] }));
}

export function addCounts(a: CountsByPlace, b: CountsByPlace): CountsByPlace {
  const sum = { ...a };
  for (const [place, count] of Object.entries(b)) sum[place] = (sum[place] ?? 0) + count;
  return sum;
}

export function totalOf(counts: CountsByPlace): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

async function overKinds(act: (layer: MemoryLayer, kind: RecordKind) => Promise<number>): Promise<CountsByPlace> {
  const counts: Record<string, number> = {};
  for (const { layer, kind } of OWNED_KINDS) {
    const count = await act(layer, kind);
    if (count > 0) counts[`memory.${layer}.${kind}`] = count;
  }
  return counts;
}
