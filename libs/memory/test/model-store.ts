import { requireOwn, requireScope } from '@etude/domain/retrieval/scopes';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { Change, Owners, RecordFilter, RecordKind, RecordStore, StoredRecord, StoreQuery } from '../src/record-store.js';
import { byCodePoints, RecordModel } from './record-model.js';

/** The plain model as a store, for tests of the layers alone: quick, and in no way durable. Has one model of vectors. */
export function modelStore(): RecordStore {
  const model = new RecordModel();
  const tenants = new Set<string>();
  const found = (scope: ReadScope, layer: MemoryLayer, filter: RecordFilter) => model.seen(requireScope(scope), layer, filter);
  return {
    name: 'model',
    async write(tenant: string, changes: readonly Change[]) {
      requireScope({ tenant, agent: null });
      tenants.add(tenant);
      changes.forEach(({ record }) => requireOwn(tenant, record.scope));
      return model.write(structuredClone(changes));
    },
    async load(scope: ReadScope, layer: MemoryLayer, kind: RecordKind, keys: readonly string[]) {
      const seen = found(scope, layer, { kinds: [kind] });
      return structuredClone(keys.flatMap((key) => seen.filter((record) => record.key === key)));
    },
    async find(scope, layer, filter, { order, limit, afterKey }) {
      const seen = found(scope, layer, filter);
      if (order === 'newest') return seen.toSorted((a, b) => b.createdAt - a.createdAt || byKey(b, a)).slice(0, limit);
      return seen
        .filter(({ key }) => afterKey === undefined || byCodePoints(key, afterKey) > 0)
        .toSorted(byKey)
        .slice(0, limit);
    },
    async search(scope: ReadScope, layer: MemoryLayer, query: StoreQuery) {
      const { dense, words } = model.search(requireScope(scope), layer, query);
      return { dense: dense.slice(0, query.limit), words: words.slice(0, query.limit) };
    },
    each: (owners: Owners, layer: MemoryLayer, filter: RecordFilter) => pages(model.owned(owners, layer, filter)),
    async count(owners: Owners, layer: MemoryLayer, filter: RecordFilter) {
      return filter.withoutVectorsOf === undefined ? model.owned(owners, layer, filter).length : 0;
    },
    async remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter) {
      return model.remove(owners, layer, filter);
    },
    async purge() {
      return [];
    },
    async tenants() {
      return [...tenants].toSorted();
    },
    async models() {
      return [];
    },
    async addModel() {},
    async setModelReady() {},
    async dropModel() {},
    async setVectors() {
      return false;
    },
    damage: async () => [],
    diskBytes: () => null,
    async check() {},
    close() {},
  };
}

async function* pages(records: readonly StoredRecord[]) {
  if (records.length > 0) yield records;
}

function byKey(a: StoredRecord, b: StoredRecord): number {
  return byCodePoints(a.key, b.key);
}
