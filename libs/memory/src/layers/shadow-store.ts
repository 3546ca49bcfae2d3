import { cosineOf } from '@etude/domain/retrieval/calibration';
import { bm25Scores, termCounts } from '@etude/domain/retrieval/words';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import {
  bestCandidates,
  type Candidate,
  type Change,
  compareKeys,
  type IndexedText,
  matches,
  type MemoryRecord,
  nameOf,
  newestFirst,
  type RecordFilter,
  type RecordStore,
  seenBy,
  type StoredRecord,
  type StoreQuery,
} from '../record-store.js';

export interface ShadowRecord {
  readonly record: StoredRecord;
  /** The stored record; null if the shadow inserted it. */
  readonly before: StoredRecord | null;
  readonly indexed: readonly IndexedText[];
}

/**
 * A store that reads from `base` and keeps its writes in memory. Only its `load`, `find` and `search` see these writes. The BM25 of an inserted
 * record is computed from the records that `base` found, not from all records. So it tends to be too high.
 */
export function shadowStore(base: RecordStore): { readonly store: RecordStore; readonly written: () => readonly ShadowRecord[] } {
  const written = new Map<string, ShadowRecord>();
  const known = async ({ layer, kind, key, scope: { tenant } }: MemoryRecord) => {
    const shadow = written.get(nameOf({ kind, key }));
    if (shadow !== undefined) return shadow;
    const [before] = await base.load({ tenant, agent: null }, layer, kind, [key]);
    return before && { record: before, before, indexed: [] };
  };
  const apply = async (change: Change): Promise<boolean> => {
    const now = await known(change.record);
    if (change.do === 'insert' ? now !== undefined : now?.record.revision !== change.revision) return false;
    const indexed = change.do === 'update' ? (now?.indexed ?? []) : change.indexed;
    const record = { ...change.record, revision: (now?.record.revision ?? 0) + 1 };
    written.set(nameOf(record), { record, before: now?.before ?? null, indexed });
    return true;
  };
  const over = (found: readonly StoredRecord[], scope: ReadScope, layer: MemoryLayer, filter: RecordFilter) => [
    ...found.filter((record) => !written.has(nameOf(record))),
    ...[...written.values()].map(({ record }) => record).filter((record) => isSeen(record, scope, layer) && matches(record, filter)),
  ];
  const store: RecordStore = {
    ...base,
    async write(_tenant, changes) {
      const done: boolean[] = [];
      for (const change of changes) done.push(await apply(change));
      return done;
    },
    async load(scope, layer, kind, keys) {
      const found = over(await base.load(scope, layer, kind, keys), scope, layer, { kinds: [kind], keys });
      return keys.flatMap((key) => found.filter((record) => record.key === key));
    },
    async find(scope, layer, filter, page) {
      const found = over(await base.find(scope, layer, filter, page), scope, layer, filter);
      const order = page.order === 'newest' ? newestFirst : (a: StoredRecord, b: StoredRecord) => compareKeys(a.key, b.key);
      return found.toSorted(order).slice(0, page.limit);
    },
    async search(scope, layer, query) {
      const found = await base.search(scope, layer, query);
      const isNew = (one: ShadowRecord) => one.before === null && isSeen(one.record, scope, layer) && matches(one.record, shownIn(query));
      const added = [...written.values()].filter((one) => one.indexed.length > 0 && isNew(one));
      const scored = added.length === 0 ? [] : await candidatesOf(base, scope, layer, query, { added, found });
      const kept = found.flatMap((one) => asShadowed(one, written.get(nameOf(one)), query));
      return bestCandidates([...kept, ...scored], query.limit);
    },
  };
  return { store, written: () => [...written.values()] };
}

export function changeOf({ record, before, indexed }: ShadowRecord): Change {
  return before === null ? { do: 'insert', record, indexed } : { do: 'update', record, revision: before.revision };
}

const shownIn = (query: StoreQuery): RecordFilter => ({ ...query, shown: query.shown ?? true });

function isSeen({ layer, scope }: MemoryRecord, reader: ReadScope, wanted: MemoryLayer): boolean {
  const { tenant, agents, users } = seenBy(reader);
  const isOwn = scope.tenant === tenant && (agents === null || agents.includes(scope.agent));
  return layer === wanted && isOwn && (users === null || users.includes(scope.user));
}

/** The candidate with the values that the shadow wrote for its record. Empty if the query no longer finds the record. */
function asShadowed(candidate: Candidate, shadow: ShadowRecord | undefined, query: StoreQuery): readonly Candidate[] {
  if (shadow === undefined) return [candidate];
  const { createdAt, worth } = shadow.record;
  return matches(shadow.record, shownIn(query)) ? [{ ...candidate, createdAt, worth }] : [];
}

async function candidatesOf(
  base: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  { text, vector }: StoreQuery,
  { added, found }: { readonly added: readonly ShadowRecord[]; readonly found: readonly Candidate[] },
): Promise<readonly Candidate[]> {
  const worded = found.filter(({ bm25 }) => bm25 > 0);
  const kinds = [...Map.groupBy(worded, ({ kind }) => kind)].map(([kind, some]) => [kind, some.map(({ key }) => key)] as const);
  const loaded = await Promise.all(kinds.map(([kind, keys]) => base.load(scope, layer, kind, keys)));
  const ours = added.map(({ indexed }) => termCounts(indexed.map((one) => one.text)));
  const bm25s = bm25Scores(text, ours, [...loaded.flat().map((record) => termCounts([record.text])), ...ours]);
  return added.map(({ record: { kind, key, createdAt, worth }, indexed }, at) => {
    const cosines = indexed.flatMap((one) => (one.vector && vector ? [cosineOf(one.vector, vector)] : []));
    return { kind, key, createdAt, worth, bm25: bm25s[at]!, cosine: Math.max(0, ...cosines) };
  });
}
