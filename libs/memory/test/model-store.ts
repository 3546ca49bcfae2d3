import { type ReadScope, requireOwn, requireScope } from '@etude/domain/ports/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { RecordFilter, RecordStore, StoredRecord } from '../src/record-store.js';
import { byCodePoints, isBehind, RecordModel } from './record-model.js';

/** `RecordModel` as a store, for fast tests of the layers alone. It isn't durable and has no vector models. */
export function modelStore(): RecordStore {
  const model = new RecordModel();
  const tenants = new Set<string>();
  const found = (scope: ReadScope, layer: MemoryLayer, filter: RecordFilter) => model.seen(requireScope(scope), layer, filter);
  return {
    name: 'model',
    async write(tenant, changes) {
      requireScope({ tenant, agent: null });
      tenants.add(tenant);
      changes.forEach(({ record }) => requireOwn(tenant, record.scope));
      return model.write(structuredClone(changes));
    },
    async load(scope, layer, kind, keys) {
      const seen = found(scope, layer, { kinds: [kind] });
      return structuredClone(keys.flatMap((key) => seen.filter((record) => record.key === key)));
    },
    async find(scope, layer, filter, { order, limit, afterKey, after }) {
      const seen = found(scope, layer, filter);
      const newest = seen.filter((record) => isBehind(after, record)).toSorted((a, b) => b.createdAt - a.createdAt || byKey(b, a));
      if (order === 'newest') return newest.slice(0, limit);
      return seen
        .filter(({ key }) => afterKey === undefined || byCodePoints(key, afterKey) > 0)
        .toSorted(byKey)
        .slice(0, limit);
    },
    async search(scope, layer, query) {
      const { dense, words } = model.search(requireScope(scope), layer, query);
      return { dense: dense.slice(0, query.limit), words: words.slice(0, query.limit) };
    },
    async *each(...args) {
      const records = model.owned(...args);
      if (records.length > 0) yield records;
    },
    count: async (owners, layer, filter) => (filter.withoutVectorsOf === undefined ? model.owned(owners, layer, filter).length : 0),
    remove: async (...args) => model.remove(...args),
    purge: async () => [],
    tenants: async () => [...tenants].toSorted(),
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

function byKey(a: StoredRecord, b: StoredRecord): number {
  return byCodePoints(a.key, b.key);
}
