import type { Change, IndexedText, MemoryRecord, Owners, RecordFilter, RecordStore, StoredRecord } from '../src/record-store.js';

export const SAMPLE_MODEL = { name: 'sample-8', dimension: 8 } as const;
export const OTHER_MODEL = { name: 'other-4', dimension: 4 } as const;

export const ACME = { tenant: 'acme', agent: null } as const;
export const BETA = { tenant: 'beta', agent: null } as const;

/** A fact of the agent "coder" of acme. `part` replaces any of its parts. */
export function recordOf(part: Partial<MemoryRecord> = {}): MemoryRecord {
  const key = part.key ?? 'k1';
  return {
    layer: 'semantic',
    kind: 'fact',
    key,
    scope: { tenant: 'acme', agent: 'coder', user: null },
    createdAt: 1_000,
    worth: 0.5,
    shown: true,
    fields: {},
    title: `title of ${key}`,
    text: `text of ${key}`,
    sources: ['e1'],
    body: JSON.stringify({ key, n: 1 }),
    ...part,
  };
}

/** A unit vector. `towards` has its length along each axis, by the number of the axis. */
export function vectorOf(towards: Readonly<Record<number, number>>, dimension: number = SAMPLE_MODEL.dimension): Float32Array {
  const vector = Float32Array.from({ length: dimension }, (_, axis) => towards[axis] ?? 0);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** Pseudorandom numbers from -0.5 to 0.5, the same in every run. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

export function insert(record: MemoryRecord, ...indexed: readonly IndexedText[]): Change {
  return { do: 'insert', record, indexed };
}

/** Inserts a record that search finds by its text and, if given, by the vector along `axis`. */
export function searchable(part: Partial<MemoryRecord>, text: string, axis?: number): Change {
  return insert(recordOf(part), { text, vector: axis === undefined ? null : vectorOf({ [axis]: 1 }) });
}

export async function collect(pages: AsyncIterable<readonly StoredRecord[]>): Promise<StoredRecord[]> {
  const all: StoredRecord[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}

export async function keysOfAll(store: RecordStore, owners: Owners, filter: RecordFilter = {}): Promise<string[]> {
  const all = await collect(store.each(owners, 'semantic', filter));
  return all.map(({ key }) => key).toSorted();
}

export async function keysFound(store: RecordStore, filter: RecordFilter): Promise<string[]> {
  const found = await store.find(ACME, 'semantic', filter, { order: 'key', limit: 100 });
  return found.map(({ key }) => key);
}
