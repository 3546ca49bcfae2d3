import { errorCode } from '@etude/contracts/errors';
import type { ReadScope } from '@etude/domain/ports/memory';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Candidate, Owners, RecordFilter, RecordKind, RecordStore, StoredRecord, Model, StoreQuery } from '../record-store.js';
import { bestCandidates, ownedBy, seenBy } from '../record-store.js';
import { denseOf, PointVectors, surplusOf, weightName } from './point-vectors.js';
import { QdrantServer, type QdrantServerOptions } from './qdrant-server.js';
import { eachRecord, filterConditions, is, loadRecords, newestRecords, recordId, recordsByKey, revisionIn } from './record-points.js';
import { writeRecords } from './record-writes.js';
import {
  ANCHOR_TENANT,
  type CollectionNames,
  collectionNames,
  decodeText,
  requireServer,
  storeModels,
  vectorName,
  WORDS,
} from './store-schema.js';
import { type Conditions, type ScoredPoint, TenantPoints } from './tenant-points.js';
import type { MemoryLayer } from '@etude/contracts/task';

export interface QdrantStoreOptions extends QdrantServerOptions {
  readonly model: Model;
  /** Prefix of the collection names, so that several stores can share a server. */
  readonly collectionPrefix: string;
}

const REMOVED_PER_REQUEST = 1_000;

/** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION, INVALID_ARGUMENT for invalid options */
export async function openQdrantStore(options: QdrantStoreOptions): Promise<RecordStore> {
  const server = new QdrantServer(options);
  const names = collectionNames(options.collectionPrefix);
  await requireServer(server);
  const models = storeModels(server, names);
  const { model } = options;
  const { layers } = names;
  const secret = await models.open(model);
  const seen = (scope: ReadScope) => new TenantPoints(server, seenBy(scope));
  const owned = (owners: Owners) => new TenantPoints(server, ownedBy(owners));
  const at = (points: TenantPoints, layer: MemoryLayer, filter: RecordFilter) =>
    [points, layers[layer], filterConditions(points.tenant, filter)] as const;
  const vectorsOf = ({ tenant }: TenantPoints) => new PointVectors(secret, tenant);
  return {
    name: 'qdrant',
    async write(tenant, changes) {
      const points = owned({ tenant });
      return writeRecords({ points, layers, vectors: vectorsOf(points), model, models: () => models.list() }, changes);
    },
    load: async (scope, layer, kind, keys) => loadRecords(seen(scope), layers[layer], kind, keys),
    find: async (scope, layer, filter, { order, ...page }) =>
      (order === 'newest' ? newestRecords : recordsByKey)(...at(seen(scope), layer, filter), page),
    async search(scope, layer, query) {
      const points = seen(scope);
      return searchCandidates(points, layers[layer], { vectors: vectorsOf(points), model }, query);
    },
    async *each(owners, layer, filter) {
      yield* eachRecord(...at(owned(owners), layer, filter));
    },
    async count(owners, layer, filter) {
      const [points, ...asked] = at(owned(owners), layer, filter);
      return points.count(...asked);
    },
    remove: async (owners, layer, filter) => removeRecords(...at(owned(owners), layer, filter)),
    purge: () => purge(server, names),
    tenants: () => tenantsOf(server, Object.values(layers)),
    models: () => models.list(),
    addModel: (added) => models.add(added),
    setModelReady: (name) => models.setReady(name),
    dropModel: (name) => models.drop(name),
    async setVectors(tenant, record, name, vectors) {
      const points = owned({ tenant });
      return setVectors(points, layers[record.layer], record, name, denseOf(vectors, await models.require(name)));
    },
    // Qdrant writes a point whole or not at all.
    damage: async () => [],
    diskBytes: () => null,
    check: async () => void (await models.check()),
    close: () => server.close(),
  };
}

const CANDIDATE = ['kind', 'key', 'created_at', 'worth', 'worded'];
/** Extra results to ask for, because ties are ordered here, not by the server. */
const TIES = 16;
const OVERSAMPLING = 2;
/** Scores are rounded to millionths, since vectors have single precision. */
const PRECISION = 1e6;
/** Lowest score of a record found by words, since 0 means that the words didn't find it. */
const BM25_MIN = 1e-6;

/** Finds candidates with one request for searches by vector, by words, by words again to get cosines, and for the presence word. */
async function searchCandidates(
  points: TenantPoints,
  collection: string,
  { vectors, model }: { readonly vectors: PointVectors; readonly model: Model },
  query: StoreQuery,
): Promise<readonly Candidate[]> {
  const { vector, text, limit } = query;
  const dense = denseOf([vector], model);
  const words = vectors.ofQuery(text);
  if (limit <= 0 || (dense.length === 0 && words === null)) return [];
  // More candidates by words, because the server's word weights count the records of all tenants.
  const wordLimit = limit * OVERSAMPLING + TIES;
  const byVector = { using: vectorName(model.name), query: dense, limit: limit + TIES, payload: CANDIDATE };
  const byWords = { using: WORDS, query: words, limit: wordLimit };
  const weights = words?.indices.map((word) => `w.${weightName(word)}`) ?? [];
  const found = await points.search(collection, filterConditions(points.tenant, { ...query, shown: query.shown ?? true }), {
    ...(dense.length === 0 ? {} : { byVector }),
    ...(words === null ? {} : { byWords: { ...byWords, payload: [...CANDIDATE, ...weights] } }),
    ...(dense.length === 0 || words === null ? {} : { ofWords: { ...byVector, limit: wordLimit, payload: [], among: byWords } }),
    presence: { using: WORDS, query: vectors.ofPresence(), limit: 1, payload: [] },
  });
  const near = found.get('byVector') ?? [];
  // Before Qdrant 1.19 a point may keep stale words after a replacement by a text without words.
  const worded = (found.get('byWords') ?? []).filter(({ payload }) => payload['worded'] !== false);
  const [anchorScore, presenceScore = 0] = ['anchor', 'presence'].map((name) => found.get(name)?.[0]?.score);
  const surplus = anchorScore === undefined ? 0 : surplusOf(anchorScore, presenceScore);
  const cosines = new Map([...(found.get('ofWords') ?? []), ...near].map(({ id, score }) => [id, cosineOf(score)]));
  const bm25s = new Map(worded.map((point) => [point.id, bm25Of(point, surplus)]));
  const byId = new Map([...worded, ...near].map((point) => [point.id, point]));
  const candidates = [...byId].map(([id, { payload }]) => ({
    kind: payload['kind'] as RecordKind,
    key: decodeText(String(payload['key'])),
    createdAt: Number(payload['created_at']),
    worth: Number(payload['worth']),
    cosine: cosines.get(id) ?? 0,
    bm25: bm25s.get(id) ?? 0,
  }));
  return bestCandidates(candidates, limit);
}

function bm25Of({ score, payload }: ScoredPoint, surplus: number): number {
  const weights = Object.values((payload['w'] as Readonly<Record<string, number>> | undefined) ?? {});
  return Math.max(BM25_MIN, rounded(score - surplus * weights.reduce((sum, weight) => sum + weight, 0)));
}

function cosineOf(score: number): number {
  return Math.max(-1, Math.min(1, rounded(score)));
}

function rounded(value: number): number {
  return Math.round(value * PRECISION) / PRECISION;
}

async function removeRecords(points: TenantPoints, collection: string, must: Conditions): Promise<number> {
  let removed = 0;
  // Reads from the start each time, so that records written meanwhile are removed too.
  for (;;) {
    const { points: found } = await points.scroll(collection, must, { limit: REMOVED_PER_REQUEST, payload: ['revision'] });
    if (found.length === 0) return removed;
    await points.delete(collection, [{ has_id: found.map(({ id }) => id) }, ...must]);
    removed += found.length;
  }
}

async function setVectors(
  points: TenantPoints,
  collection: string,
  { kind, key, revision }: Pick<StoredRecord, 'kind' | 'key' | 'revision'>,
  model: string,
  dense: readonly (readonly number[])[],
): Promise<boolean> {
  const id = recordId(points.tenant, kind, key);
  const must = [{ has_id: [id] }, is('revision', revision)];
  const before = await points.scroll(collection, must, { limit: 1, payload: ['blank'] });
  if (before.points[0] === undefined) return false;
  if (dense.length === 0) {
    const blank = new Set([...((before.points[0].payload['blank'] as readonly string[] | undefined) ?? []), model]);
    await points.setPayload(collection, { blank: [...blank] }, must);
  } else
    await points.setVectors(collection, [{ id, vector: { [vectorName(model)]: dense } }], must).catch((error: unknown) => {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    });
  const after = await points.scroll(collection, must, { limit: 1, payload: ['revision'] });
  return after.points.some(({ payload }) => revisionIn(payload) === revision);
}

/** More tenants than any installation has. */
const TENANTS_MAX = 1_000_000;

/** All tenants with a point in these collections, sorted. Spans tenants, so it is only for maintenance of the whole store. */
async function tenantsOf(server: QdrantServer, collections: readonly string[]): Promise<string[]> {
  const tenants = new Set<string>();
  for (const collection of collections) {
    const request = { key: 'tenant', limit: TENANTS_MAX, exact: true };
    const { hits } = await server.ask(`name the tenants in ${collection}`, (client) => client.facet(collection, request));
    // The index may still name deleted tenants, with a count of 0.
    for (const { value, count } of hits) if (count > 0 && value !== ANCHOR_TENANT) tenants.add(String(value));
  }
  return [...tenants].toSorted();
}

const VACUUM_WAIT_MS = 60_000;
const VACUUM_LOOK_MS = 100;
/** How many checks in a row must find Qdrant idle. One check isn't enough, since Qdrant doesn't start its work at once. */
const VACUUM_REST_LOOKS = 5;
/** Qdrant's default values, and the lowest that it accepts. */
const VACUUM_USUAL = { deleted_threshold: 0.2, vacuum_min_vector_number: 1_000 };
const VACUUM_AT_ONCE = { deleted_threshold: 0.0001, vacuum_min_vector_number: 100 };

/** Makes Qdrant rewrite its segments now. Otherwise deleted points stay until they are a fifth of their segment. */
async function purge(server: QdrantServer, names: CollectionNames): Promise<string[]> {
  const collections = Object.values(names.layers);
  const done = await Promise.all(collections.map((collection) => vacuum(server, collection)));
  const slow = collections.filter((_collection, i) => !done[i]);
  return [
    slow.length === 0
      ? 'rewrote segments with more than 100 points without the deleted points'
      : `Qdrant was still busy with ${slow.join(', ')} after ${VACUUM_WAIT_MS / 1_000} s, and continues to rewrite segments in the background`,
    'segments with fewer points, the last pieces of the write-ahead log (32 MiB each) and snapshots may hold bytes of deleted points until Qdrant overwrites them; answers never contain deleted points',
  ];
}

async function vacuum(server: QdrantServer, collection: string): Promise<boolean> {
  const configure = (optimizers_config: typeof VACUUM_USUAL) =>
    server.ask(`clean ${collection}`, (client) => client.updateCollection(collection, { optimizers_config }));
  await configure(VACUUM_AT_ONCE);
  try {
    const deadline = performance.now() + VACUUM_WAIT_MS;
    for (let rested = 0; performance.now() < deadline; await sleep(VACUUM_LOOK_MS)) {
      const { status, optimizer_status } = await server.ask(`tell about ${collection}`, (client) => client.getCollection(collection));
      rested = status === 'green' && optimizer_status === 'ok' ? rested + 1 : 0;
      if (rested === VACUUM_REST_LOOKS) return true;
    }
    return false;
  } finally {
    await configure(VACUUM_USUAL);
  }
}
