import type { MemoryLayer } from '@etude/contracts/task';
import { hash } from 'node:crypto';
import type { QdrantClient, Schemas } from '@qdrant/js-client-rest';
import { LAYERS, RECORD_FIELDS, type Model } from '../record-store.js';
import type { QdrantServer } from './qdrant-server.js';

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
export async function ensureCollections(server: QdrantServer, { layers }: CollectionNames, models: readonly Model[]): Promise<void> {
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
  // A record has one vector for each of its texts; the closest one counts.
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

export async function dropVector(server: QdrantServer, collection: string, model: string): Promise<void> {
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
 * The id of the point with these names: a UUID version 8 from SHA-256, so that every writer computes the same.
 *
 * Not version 5: with SHA-1 an attacker could find two names with the same id.
 */
export function pointId(...names: ReadonlyArray<string | number>): string {
  const bytes = hash('sha256', JSON.stringify(names), 'buffer').subarray(0, 16);
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
