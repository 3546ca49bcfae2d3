import type { MemoryLayer } from '@etude/contracts/task';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { hash, randomBytes } from 'node:crypto';
import type { QdrantClient, Schemas } from '@qdrant/js-client-rest';
import { LAYERS, type Model, RECORD_FIELDS, type VectorModel } from '../record-store.js';
import { requireReadable, storedModel } from '../vector-models.js';
import type { QdrantServer } from './qdrant-server.js';
import { z } from 'zod';

/** The sparse vector of a record's words. */
export const WORDS = 'words';
/** The tenant of one point per layer, whose only word is `ANCHOR_WORD`; see `surplusOf`. No real tenant has this name. */
export const ANCHOR_TENANT = '';
export const ANCHOR_WORD = 0;

export interface CollectionNames {
  readonly layers: Readonly<Record<MemoryLayer, string>>;
  readonly meta: string;
}

export function collectionNames(prefix: string): CollectionNames {
  const layers = { episodic: `${prefix}_episodic`, semantic: `${prefix}_semantic`, procedural: `${prefix}_procedural` };
  return { layers, meta: `${prefix}_meta` };
}

/** The name of a model's vector. Shortened and hashed, since Qdrant limits characters and length. */
export function vectorName(model: string): string {
  const slug = model.replaceAll(/[^A-Za-z0-9._-]+/g, '-').slice(0, 80);
  return `d_${slug}_${hash('sha256', model).slice(0, 8)}`;
}

/** Builds one graph per tenant and none over all, since every search is inside a tenant. */
const HNSW = { m: 0, payload_m: 16 };

const exact = { type: 'keyword', enable_hnsw: false } as const;
/** Indexes for everything that filters use. A server in strict mode, such as Qdrant's cloud, refuses filters without an index. */
const RECORD_INDEXES: Readonly<Record<string, Schemas['PayloadFieldSchema']>> = {
  tenant: { type: 'keyword', is_tenant: true },
  agent: exact,
  user: exact,
  kind: exact,
  shown: { type: 'bool', enable_hnsw: false },
  worded: { type: 'bool', enable_hnsw: false },
  blank: exact,
  created_at: { type: 'integer', lookup: false, range: true, enable_hnsw: false },
  worth: { type: 'float', enable_hnsw: false },
  revision: { type: 'integer', lookup: true, range: false, enable_hnsw: false },
  ...Object.fromEntries(RECORD_FIELDS.map((field) => [`f.${field}`, exact])),
};

/** Creates the missing collections of the layers, with vectors for these models. Safe for several processes at once. */
async function ensureCollections(server: QdrantServer, { layers }: CollectionNames, models: readonly Model[]): Promise<void> {
  // Layers are prepared at the same time, since each index costs the server several disk writes in sequence.
  await Promise.all(LAYERS.map((layer) => ensureLayer(server, layer, layers[layer], models)));
}

async function ensureLayer(server: QdrantServer, layer: MemoryLayer, name: string, models: readonly Model[]): Promise<void> {
  await ensureCollection(server, name, { sparse_vectors: { [WORDS]: { modifier: 'idf' } }, hnsw_config: HNSW });
  const { config, payload_schema } = await infoOf(server, name);
  for (const model of models.filter((one) => !(vectorName(one.name) in (config.params.vectors ?? {}))))
    await addVector(server, name, model);
  const missing = Object.entries(RECORD_INDEXES).filter(([field]) => !(field in payload_schema));
  for (const [field_name, field_schema] of missing)
    await server.ask(`index ${name}`, (client) => client.createPayloadIndex(name, { field_name, field_schema, wait: true }));
  if (missing.length > 0) await putAnchor(server, name, layer);
}

export async function ensureCollection(
  server: QdrantServer,
  name: string,
  config: Omit<Parameters<QdrantClient['createCollection']>[1], 'vectors'> = {},
): Promise<void> {
  const isThere = async () => (await server.ask(`look for ${name}`, (client) => client.collectionExists(name))).exists;
  if (await isThere()) return;
  const { replicas } = server;
  // A record is changed by compare-and-set, so a write counts only when every copy has it.
  const copies = replicas === undefined ? {} : { replication_factor: replicas, write_consistency_factor: replicas };
  const make = () => server.ask(`make ${name}`, (client) => client.createCollection(name, { vectors: {}, ...copies, ...config }));
  await unlessFaster(make, isThere);
}

async function addVector(server: QdrantServer, collection: string, { name: model, dimension: size }: Model): Promise<void> {
  const name = vectorName(model);
  // A record has one vector for each of its texts; the closest vector counts.
  const config = { dense: { size, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } } } as const;
  const add = () =>
    server.ask(`add vectors to ${collection}`, (client) => client.createVectorName(collection, name, config, { wait: true }));
  await unlessFaster(add, async () => name in ((await infoOf(server, collection)).config.params.vectors ?? {}));
}

/** Ignores the failure of `make` if another process made the same thing meanwhile. */
async function unlessFaster(make: () => Promise<unknown>, isThere: () => Promise<boolean>): Promise<void> {
  try {
    await make();
  } catch (error) {
    if (!(await isThere())) throw error;
  }
}

async function dropVector(server: QdrantServer, collection: string, model: string): Promise<void> {
  const name = vectorName(model);
  if (!(name in ((await infoOf(server, collection)).config.params.vectors ?? {}))) return;
  await server.ask(`drop vectors of ${collection}`, (client) => client.deleteVectorName(collection, name, { wait: true }));
}

function infoOf(server: QdrantServer, collection: string) {
  return server.ask(`tell about ${collection}`, (client) => client.getCollection(collection));
}

async function putAnchor(server: QdrantServer, collection: string, layer: MemoryLayer): Promise<void> {
  const vector = { [WORDS]: { indices: [ANCHOR_WORD], values: [1] } };
  const point = { id: pointId('anchor', layer), vector, payload: { tenant: ANCHOR_TENANT, shown: false } };
  await server.ask(`prepare ${collection}`, (client) =>
    client.upsert(collection, { points: [point], update_mode: 'insert_only', wait: true }),
  );
}

/**
 * The id of the point with these names: a UUID version 8 from SHA-256, so that every writer computes the same id. Not version 5: with SHA-1 an
 * attacker could find two names with the same id.
 */
export function pointId(...names: ReadonlyArray<string | number>): string {
  const bytes = hash('sha256', JSON.stringify(names), 'buffer').subarray(0, 16);
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Prefix of texts that are stored as JSON. */
const MARK = '\u0001';

/**
 * Encodes a text for Qdrant, which refuses lone surrogates. A text with a lone surrogate, or with our prefix, becomes prefixed JSON; other
 * texts stay as they are. Different texts have different encodings, so filters can compare them.
 */
export function encodeText(text: string): string {
  return text.isWellFormed() && !text.startsWith(MARK) ? text : MARK + JSON.stringify(text);
}

export function decodeText(stored: string): string {
  return stored.startsWith(MARK) ? (JSON.parse(stored.slice(MARK.length)) as string) : stored;
}

/** Version of the stored data. A store of another version is refused. */
const SCHEMA = 1;
const SCHEMA_POINT = pointId('schema');
const MODELS_MAX = 1_000;
/** Qdrant has conditional writes since 1.17, and adds vectors to a collection since 1.18. Older servers ignore the conditions. */
const SERVER_MIN = { major: 1, minor: 18 };

const VersionInfo = z.looseObject({ version: z.string().regex(/^\d+\.\d+/) });

/** @throws EtudeError MEMORY_VERSION for an old Qdrant, or a server that isn't Qdrant */
export async function requireServer(server: QdrantServer): Promise<void> {
  const told: unknown = await server
    .ask('tell its version', (client) => client.versionInfo())
    .catch((error: unknown) => {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    });
  const { version = 'none' } = VersionInfo.safeParse(told).data ?? {};
  const [major = 0, minor = 0] = version.split('.', 2).map(Number);
  if (major > SERVER_MIN.major || (major === SERVER_MIN.major && minor >= SERVER_MIN.minor)) return;
  const message =
    `the server at ${server.where} has the version ${version} of Qdrant; this release needs ${SERVER_MIN.major}.${SERVER_MIN.minor} or newer. ` +
    'Upgrade the server, or check the address and its port, usually 6333 (ETUDE_QDRANT_URL)';
  throw new EtudeError('MEMORY_VERSION', message);
}

const modelId = (model: string) => pointId('model', model);

/** Data of the whole store: its schema version, its secret, and its vector models. */
export function storeModels(server: QdrantServer, names: CollectionNames) {
  const { meta } = names;
  const where = `the memory ${meta} on Qdrant at ${server.where}`;
  const ask = <T>(what: 'read' | 'write to', request: (client: QdrantClient) => Promise<T>) => server.ask(`${what} ${meta}`, request);
  const insert = (id: string, payload: Record<string, unknown>) =>
    ask('write to', (client) => client.upsert(meta, { points: [{ id, payload, vector: {} }], update_mode: 'insert_only', wait: true }));
  const models = {
    /** Creates what is missing and returns the store's secret. @throws EtudeError MEMORY_VERSION */
    async open(model: Model): Promise<string> {
      await ensureCollection(server, meta);
      await insert(SCHEMA_POINT, { schema: SCHEMA, secret: randomBytes(16).toString('hex') });
      if ((await models.list()).length === 0) await insert(modelId(model.name), payloadOf(model, 'ready'));
      const secret = await models.check();
      const stored = await models.list();
      requireReadable(stored, model, where);
      await ensureCollections(server, names, stored);
      return secret;
    },
    /** Returns the store's secret. @throws EtudeError MEMORY_VERSION for another schema version, MEMORY_UNAVAILABLE for an empty store */
    async check(): Promise<string> {
      const [point] = await ask('read', (client) => client.retrieve(meta, { ids: [SCHEMA_POINT] }));
      const { schema, secret } = point?.payload ?? {};
      if (schema === SCHEMA && typeof secret === 'string') return secret;
      if (schema === undefined) throw new EtudeError('MEMORY_UNAVAILABLE', `${where} is empty; restore it from a snapshot`);
      const message =
        `${where} has version ${JSON.stringify(schema)}, and this release reads version ${SCHEMA}; export it with the release that wrote it ` +
        '(`etude memory export`), and import it here with another ETUDE_QDRANT_COLLECTION_PREFIX';
      throw new EtudeError('MEMORY_VERSION', message);
    },
    async list(): Promise<VectorModel[]> {
      const { points } = await ask('read', (client) => client.scroll(meta, { limit: MODELS_MAX }));
      return points
        .flatMap(({ payload }) => (typeof payload?.['model'] === 'string' ? [modelOf(payload)] : []))
        .toSorted((a, b) => a.name.localeCompare(b.name));
    },
    async add(model: Model): Promise<void> {
      await insert(modelId(model.name), payloadOf(model, 'building'));
      await ensureCollections(server, names, [model]);
    },
    async setReady(name: string): Promise<void> {
      const request = { payload: { state: 'ready' }, points: [modelId(name)], wait: true };
      await ask('write to', (client) => client.setPayload(meta, request));
    },
    async drop(name: string): Promise<void> {
      for (const collection of Object.values(names.layers)) await dropVector(server, collection, name);
      await ask('write to', (client) => client.delete(meta, { points: [modelId(name)], wait: true }));
    },
    /** @throws EtudeError NOT_FOUND */
    require: async (name: string): Promise<VectorModel> => storedModel(await models.list(), name, where),
  };
  return models;
}

function payloadOf({ name, dimension }: Model, state: VectorModel['state']): Record<string, unknown> {
  return { model: encodeText(name), dimension, state };
}

function modelOf(payload: Readonly<Record<string, unknown>>): VectorModel {
  const { model, dimension, state } = payload;
  return { name: decodeText(String(model)), dimension: Number(dimension), state: state === 'ready' ? 'ready' : 'building' };
}
