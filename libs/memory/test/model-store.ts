import type { MemoryLayer } from '@etude/contracts/task';
import { type ReadScope, requireOwn, requireScope } from '@etude/domain/ports/memory';
import { cosineOf } from '@etude/domain/retrieval/calibration';
import { bm25Scores, termCounts } from '@etude/domain/retrieval/words';
import {
  bestCandidates,
  type Candidate,
  type Change,
  compareKeys,
  type IndexedText,
  matches,
  type MemoryRecord,
  newestFirst,
  type Owners,
  type RecordFilter,
  type RecordStore,
  type StoredRecord,
  type StoreQuery,
} from '../src/record-store.js';

interface Kept {
  readonly record: StoredRecord;
  readonly indexed: readonly IndexedText[];
}

/**
 * The simplest record store, for fast tests of the layers and to compare other stores with: an array that every call scans. It isn't
 * durable and has no vector models.
 *
 * @param removedCount whether removed records still count in word frequencies, as in Qdrant until it rewrites a segment
 */
export function modelStore({ removedCount = false } = {}): RecordStore {
  let kept: Kept[] = [];
  const removed: Kept[] = [];
  const records = () => kept.map(({ record }) => record);
  const seen = (scope: ReadScope, layer: MemoryLayer, filter: RecordFilter) =>
    records().filter((record) => sees(requireScope(scope), record) && record.layer === layer && matches(record, filter));
  const owned = (owners: Owners, layer: MemoryLayer, filter: RecordFilter) =>
    records().filter((record) => owns(owners, record) && record.layer === layer && matches(record, filter));
  return {
    name: 'model',
    async write(tenant, changes) {
      requireScope({ tenant, agent: null });
      changes.forEach(({ record }) => requireOwn(tenant, record.scope));
      let stopped = false;
      // A refused update or replacement ends the list.
      return structuredClone(changes).map((change) => {
        const taken = !stopped && isTaken(kept, change);
        stopped ||= !taken && change.do !== 'insert';
        return taken;
      });
    },
    async load(scope, layer, kind, keys) {
      const found = seen(scope, layer, { kinds: [kind] });
      return structuredClone(keys.flatMap((key) => found.filter((record) => record.key === key)));
    },
    async find(scope, layer, filter, { order, limit, afterKey, after }) {
      const found = seen(scope, layer, filter);
      const behind =
        order === 'newest'
          ? found.filter((record) => after === undefined || newestFirst(record, after) > 0).toSorted(newestFirst)
          : found
              .filter(({ key }) => afterKey === undefined || compareKeys(key, afterKey) > 0)
              .toSorted((a, b) => compareKeys(a.key, b.key));
      return behind.slice(0, limit);
    },
    search: async (scope, layer, query) => searchIn(kept, removedCount ? removed : [], requireScope(scope), layer, query),
    async *each(...args) {
      const found = owned(...args);
      if (found.length > 0) yield found;
    },
    count: async (owners, layer, filter) => (filter.withoutVectorsOf === undefined ? owned(owners, layer, filter).length : 0),
    async remove(...args) {
      const gone = new Set(owned(...args));
      removed.push(...kept.filter(({ record }) => gone.has(record)));
      kept = kept.filter(({ record }) => !gone.has(record));
      return gone.size;
    },
    purge: async () => [],
    tenants: async () => [...new Set(records().map(({ scope }) => scope.tenant))].toSorted(),
    models: async () => [],
    addModel: async () => {},
    setModelReady: async () => {},
    dropModel: async () => {},
    setVectors: async () => false,
    damage: async () => [],
    diskBytes: () => null,
    check: async () => {},
    close: () => {},
  };
}

function isTaken(kept: Kept[], change: Change): boolean {
  const at = kept.findIndex(({ record }) => isSame(record, change.record));
  const known = kept[at];
  if (change.do === 'insert') {
    if (known === undefined) kept.push({ record: { ...change.record, revision: 1 }, indexed: change.indexed });
    return known === undefined;
  }
  if (known?.record.revision !== change.revision) return false;
  const indexed = change.do === 'replace' ? change.indexed : known.indexed;
  kept[at] = { record: { ...change.record, revision: change.revision + 1 }, indexed };
  return true;
}

/** @param removed records that still count in word frequencies */
function searchIn(
  kept: readonly Kept[],
  removed: readonly Kept[],
  scope: ReadScope,
  layer: MemoryLayer,
  query: StoreQuery,
): readonly Candidate[] {
  const inLayer = ({ record }: Kept) => record.layer === layer && record.scope.tenant === scope.tenant;
  const termsOf = (all: readonly Kept[]) => all.filter(inLayer).map(({ indexed }) => termCounts(indexed.map(({ text }) => text)));
  const wanted = kept
    .filter(inLayer)
    .filter(({ record }) => sees(scope, record) && matches(record, { ...query, shown: query.shown ?? true }));
  const counted = termsOf([...kept, ...removed]).filter(({ words }) => words > 0);
  const bm25s = bm25Scores(query.text, termsOf(wanted), counted);
  const found = wanted.map(({ record, indexed }, at) => {
    const { kind, key, createdAt, worth } = record;
    const cosines = indexed.flatMap(({ vector }) => (vector && query.vector ? [cosineOf(vector, query.vector)] : []));
    return { kind, key, createdAt, worth, bm25: bm25s[at] ?? 0, cosine: Math.max(0, ...cosines) };
  });
  return bestCandidates(found, query.limit);
}

function isSame(a: MemoryRecord, b: MemoryRecord): boolean {
  return a.scope.tenant === b.scope.tenant && a.layer === b.layer && a.kind === b.kind && a.key === b.key;
}

function sees({ tenant, agent, user = null, also = [] }: ReadScope, { scope }: StoredRecord): boolean {
  const mine = user === null || scope.user === null || scope.user === user;
  return scope.tenant === tenant && (agent === null || scope.agent === agent || also.includes(scope.agent)) && mine;
}

function owns({ tenant, agent, user }: Owners, { scope }: StoredRecord): boolean {
  return scope.tenant === tenant && (agent === undefined || scope.agent === agent) && (user === undefined || scope.user === user);
}
