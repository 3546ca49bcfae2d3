import {
  type Fields,
  LAYERS,
  type MemoryRecord,
  type Owners,
  RECORD_KINDS,
  type RecordFilter,
  type RecordKind,
  type RecordStore,
  type StoredRecord,
} from '../record-store.js';
import type { MemoryLayer } from '@etude/contracts/task';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';

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

export async function* walkErasable(store: RecordStore, erased: Erasable, bounds: Bounds) {
  for (const { layer, kind, ...part } of partsOf(erased)) yield* store.each(ownersOf(erased), layer, { ...bounds, ...part, kinds: [kind] });
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

async function overParts(erased: Erasable, act: (layer: MemoryLayer, filter: RecordFilter) => Promise<number>): Promise<CountsByPlace> {
  const counts: Record<string, number> = {};
  for (const { layer, kind, ...part } of partsOf(erased)) {
    const count = await act(layer, { ...part, kinds: [kind] });
    if (count > 0) counts[`memory.${layer}.${kind}`] = count;
  }
  return counts;
}

/** The records to erase: all records of some owners, or one record with its parts. */
export interface Erasable extends Owners {
  readonly record?: NamedRecord;
}

interface Part extends Pick<RecordFilter, 'keys' | 'where'> {
  readonly layer: MemoryLayer;
  readonly kind: RecordKind;
}

/** All layers and kinds except erasure marks, which belong to no owner. */
export const OWNED_KINDS: readonly Part[] = LAYERS.flatMap((layer) =>
  RECORD_KINDS[layer].filter((kind) => kind !== 'erasure').map((kind) => ({ layer, kind })),
);

type Place = Omit<Part, 'keys' | 'where'> & { readonly by: keyof Fields | 'key' };

/** The parts of a record, by the first word of its name. `by`: the field that has the record's id. A new kind of record needs a line here. */
const PLACES: Readonly<Record<string, readonly Place[]>> = {
  facts: [{ layer: 'semantic', kind: 'fact', by: 'key' }],
  documents: [
    { layer: 'semantic', kind: 'chunk', by: 'document' },
    { layer: 'semantic', kind: 'document', by: 'key' },
  ],
  conversations: [
    { layer: 'semantic', kind: 'turn', by: 'document' },
    { layer: 'semantic', kind: 'conversation', by: 'key' },
  ],
  episodes: [
    { layer: 'episodic', kind: 'transition', by: 'rollout' },
    { layer: 'semantic', kind: 'summary', by: 'rollout' },
    { layer: 'semantic', kind: 'reflection', by: 'rollout' },
    { layer: 'episodic', kind: 'episode', by: 'rollout' },
  ],
  skills: [{ layer: 'procedural', kind: 'skill', by: 'id' }],
};

function ownersOf({ record, ...owners }: Erasable): Owners {
  return record === undefined ? owners : { tenant: owners.tenant, agent: record.agent, user: record.user };
}

function partsOf({ record }: Erasable): readonly Part[] {
  if (record === undefined) return OWNED_KINDS;
  const [kind, id] = splitName(record.name);
  const places = (PLACES[kind] ?? []).map(({ by, ...place }) => ({
    ...place,
    ...(by === 'key' ? { keys: [id] } : { where: { [by]: id } }),
  }));
  return [...places, ...LAYERS.map((layer) => ({ layer, kind: 'shows', where: { name: record.name } }) as const)];
}

/** @returns the kind and the id of a name such as "facts/f1" */
export function splitName(name: string): readonly [kind: string, id: string] {
  const cut = name.indexOf('/');
  return [name.slice(0, cut), name.slice(cut + 1)];
}

/** The name under which this record can be deleted: its own, or that of the record that it is a part of. null: it has no such name. */
export function nameOfRecord({ kind, key, fields, scope: { agent, user } }: MemoryRecord): NamedRecord | null {
  if (kind === 'shows') return typeof fields.name === 'string' ? { name: fields.name, agent, user } : null;
  for (const [named, places] of Object.entries(PLACES)) {
    const by = places.find((place) => place.kind === kind)?.by;
    const id = by === 'key' ? key : by && fields[by];
    if (typeof id === 'string') return { name: `${named}/${id}`, agent, user };
  }
  return null;
}
