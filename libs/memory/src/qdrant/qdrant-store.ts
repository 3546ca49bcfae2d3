import { EtudeError, errorCode } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { Owners, RecordFilter, RecordStore, StoredRecord, StoreOptions } from '../record-store.js';
import { BodyParts } from './body-parts.js';
import { searchCandidates } from './candidate-search.js';
import { type CollectionNames, collectionNames, vectorName } from './collections.js';
import { denseOf, PointVectors, WordedCounts } from './point-vectors.js';
import { QdrantServer, type QdrantServerOptions } from './qdrant-server.js';
import { filterConditions, is, partsIn, recordId, revisionIn } from './record-payload.js';
import { RecordReader } from './record-reader.js';
import { RecordWrites } from './record-writes.js';
import { requireServer, StoreModels } from './store-models.js';
import { purge, reconcile, sizeOf, tenantsOf } from './store-upkeep.js';
import { TenantPoints } from './tenant-points.js';

export interface QdrantStoreOptions extends QdrantServerOptions, StoreOptions {
  /** Collections are named after it: several stores can share a server. */
  readonly collectionPrefix: string;
  /** ms since 1970; for tests. */
  readonly now?: () => number;
}

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
const REMOVED_PER_REQUEST = 1_000;

/** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION, INVALID_ARGUMENT for options that can't be */
export async function openQdrantStore(options: QdrantStoreOptions): Promise<RecordStore> {
  if (!PREFIX.test(options.collectionPrefix)) {
    const message = `the prefix ${JSON.stringify(options.collectionPrefix)} of Qdrant's collections has other characters than letters, digits, "_" and "-", or more than 100`;
    throw new EtudeError('INVALID_ARGUMENT', message);
  }
  const server = new QdrantServer(options);
  const names = collectionNames(options.collectionPrefix);
  await requireServer(server);
  const models = new StoreModels(server, names);
  const secret = await models.open(options.model);
  return storeOn({ server, names, models, secret, model: options.model, now: options.now ?? Date.now });
}

interface Opened {
  readonly server: QdrantServer;
  readonly names: CollectionNames;
  readonly models: StoreModels;
  readonly secret: string;
  readonly model: StoreOptions['model'];
  readonly now: () => number;
}

/** What of one tenant is looked at. */
interface TenantStore {
  readonly points: TenantPoints;
  readonly parts: BodyParts;
  readonly reader: RecordReader;
}

function storeOn({ server, names, models, secret, model, now }: Opened): RecordStore {
  const worded = new WordedCounts(now);
  /** Parts belong to the tenant: every reader of a record may read its parts. */
  const through = (points: TenantPoints): TenantStore => {
    const parts = new BodyParts(TenantPoints.of(server, points.tenant), names.parts, now);
    return { points, parts, reader: new RecordReader(points, names, parts) };
  };
  const seenBy = (scope: ReadScope) => through(TenantPoints.seenBy(server, scope));
  const ownedBy = (owners: Owners) => through(TenantPoints.ownedBy(server, owners));
  const vectorsOf = ({ tenant }: TenantPoints) => new PointVectors(secret, tenant);
  return {
    name: 'qdrant',
    async write(tenant, changes) {
      const { points, parts } = ownedBy({ tenant });
      const deps = { points, names, parts, vectors: vectorsOf(points), model, models: () => models.list() };
      return new RecordWrites(deps).write(changes);
    },
    load: async (scope, layer, kind, keys) => seenBy(scope).reader.load(layer, kind, keys),
    async find(scope, layer, filter, { order, limit, afterKey }) {
      const must = filterConditions(filter);
      const { reader } = seenBy(scope);
      return order === 'newest' ? reader.newest(layer, must, limit) : reader.byKey(layer, must, limit, afterKey);
    },
    async search(scope, layer, query) {
      const must = filterConditions({ ...query, shown: query.shown ?? true });
      const { points } = seenBy(scope);
      return searchCandidates({ points, names, vectors: vectorsOf(points), model, worded }, layer, query, must);
    },
    async *each(owners, layer, filter) {
      yield* ownedBy(owners).reader.each(layer, { must: filterConditions(filter) });
    },
    count: async (owners, layer, filter) => ownedBy(owners).points.count(names.layers[layer], { must: filterConditions(filter) }),
    remove: async (owners, layer, filter) => removeRecords(ownedBy(owners), names, layer, filter, now),
    purge: () => purge(server, names),
    tenants: () => tenantsOf(server, Object.values(names.layers)),
    models: () => models.list(),
    addModel: (added) => models.add(added),
    setModelReady: (name) => models.setReady(name),
    dropModel: (name) => models.drop(name),
    async *withoutVectors(owners, layer, name) {
      const { reader } = ownedBy(owners);
      await models.require(name);
      yield* reader.each(layer, { must: [is('worded', true)], mustNot: [{ has_vector: vectorName(name) }, is('blank', name)] });
    },
    async setVectors(tenant, record, name, vectors) {
      const { points } = ownedBy({ tenant });
      return setVectors(points, names.layers[record.layer], record, name, denseOf(vectors, await models.require(name)));
    },
    reconcile: () => reconcile({ server, names, model: model.name, now, partsOf: (points) => new BodyParts(points, names.parts, now) }),
    size: () => sizeOf(server, names),
    check: () => models.check(),
    close: () => server.close(),
  };
}

async function removeRecords(
  { points, parts }: TenantStore,
  names: CollectionNames,
  layer: MemoryLayer,
  filter: RecordFilter,
  now: () => number,
): Promise<number> {
  const collection = names.layers[layer];
  const must = filterConditions(filter);
  let removed = 0;
  // Always from the start: what was written meanwhile is removed as well.
  for (;;) {
    const { points: found } = await points.scroll(collection, { must }, { limit: REMOVED_PER_REQUEST, payload: ['parts'] });
    if (found.length === 0) break;
    await points.delete(collection, { must: [{ has_id: found.map(({ id }) => id) }, ...must] });
    await parts.drop(found.flatMap(({ payload }) => partsIn(payload)?.set ?? []));
    removed += found.length;
  }
  if (Object.entries(filter).every(([name, value]) => name === 'kinds' || value === undefined))
    await new BodyParts(points, names.parts, now).dropOf([is('layer', layer), ...must]);
  return removed;
}

/** False where the record is no longer at that revision. */
async function setVectors(
  points: TenantPoints,
  collection: string,
  { kind, key, revision }: Pick<StoredRecord, 'kind' | 'key' | 'revision'>,
  model: string,
  dense: readonly (readonly number[])[],
): Promise<boolean> {
  const id = recordId(points.tenant, kind, key);
  const must = [{ has_id: [id] }, is('revision', revision)];
  const before = await points.scroll(collection, { must }, { limit: 1, payload: ['blank'] });
  if (before.points[0] === undefined) return false;
  if (dense.length === 0) {
    const blank = new Set([...((before.points[0].payload['blank'] as readonly string[] | undefined) ?? []), model]);
    await points.setPayload(collection, { blank: [...blank] }, { must });
  } else {
    try {
      await points.setVectors(collection, [{ id, vector: { [vectorName(model)]: dense } }], { must });
    } catch (error) {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    }
  }
  const after = await points.scroll(collection, { must }, { limit: 1, payload: ['revision'] });
  return after.points.some(({ payload }) => revisionIn(payload) === revision);
}
