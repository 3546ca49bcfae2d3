import type { MemoryLayer } from '@etude/contracts/task';
import { createHash } from 'node:crypto';
import type { Schemas } from '@qdrant/js-client-rest';
import { RECORD_FIELDS } from '../record-store.js';
import type { QdrantServer } from './qdrant-server.js';

export const LAYERS = ['episodic', 'semantic', 'procedural'] as const satisfies readonly MemoryLayer[];
/** The sparse vector of a record's words. */
export const WORDS = 'words';
/** No tenant has this name. Its one point per layer has `ANCHOR_WORD` and nothing else; see `Candidates`. */
export const ANCHOR_TENANT = '';
export const ANCHOR_WORD = 0;

/** Names of all collections of one store. */
export interface CollectionNames {
  readonly layers: Readonly<Record<MemoryLayer, string>>;
  readonly meta: string;
}

export function collectionNames(prefix: string): CollectionNames {
  const layers = { episodic: `${prefix}_episodic`, semantic: `${prefix}_semantic`, procedural: `${prefix}_procedural` };
  return { layers, meta: `${prefix}_meta` };
}

/** The named vector of a model; Qdrant takes neither all characters nor any length. */
export function vectorName(model: string): string {
  const slug = model.replaceAll(/[^A-Za-z0-9._-]+/g, '-').slice(0, 80);
  return `d_${slug}_${createHash('sha256').update(model).digest('hex').slice(0, 8)}`;
}

/** A record has one vector for each of its texts; the closest counts. */
const SEVERAL = { comparator: 'max_sim' } as const;

/** No graph over all tenants, one for each: every search is inside a tenant. */
const HNSW = { m: 0, payload_m: 16 };

const exact = { type: 'keyword', enable_hnsw: false } as const;
/** All that filters look at: a server in strict mode, as Qdrant's cloud has it, refuses others. */
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

interface Wanted {
  readonly name: string;
  readonly vectors: Readonly<Record<string, Schemas['VectorParams']>>;
  readonly words: boolean;
  readonly indexes: Readonly<Record<string, Schemas['PayloadFieldSchema']>>;
}

/** Makes what is missing of the layers' collections; any number of processes may do so at once. */
export async function ensureCollections(
  server: QdrantServer,
  names: CollectionNames,
  models: ReadonlyArray<{ readonly name: string; readonly dimension: number }>,
): Promise<void> {
  const vectors = Object.fromEntries(models.map(({ name, dimension }) => [vectorName(name), vectorParams(dimension)]));
  const ofLayer = async (layer: MemoryLayer): Promise<void> => {
    const name = names.layers[layer];
    if (await ensureCollection(server, { name, vectors, words: true, indexes: RECORD_INDEXES })) await putAnchor(server, name, layer);
  };
  // An index takes a server several writes to disk, one after the other within a collection.
  await Promise.all(LAYERS.map(ofLayer));
}

export function vectorParams(dimension: number): Schemas['VectorParams'] {
  return { size: dimension, distance: 'Cosine', multivector_config: SEVERAL };
}

/** Adds the named vector of a model to a layer's collection where it is not there. */
export async function ensureVector(server: QdrantServer, collection: string, model: { name: string; dimension: number }): Promise<void> {
  const name = vectorName(model.name);
  if (name in (await vectorsOf(server, collection))) return;
  try {
    const config = { dense: { size: model.dimension, distance: 'Cosine' as const, multivector_config: SEVERAL } };
    await server.ask(`add vectors to ${collection}`, (client) => client.createVectorName(collection, name, config, { wait: true }));
  } catch (error) {
    // Another process may have been faster.
    if (!(name in (await vectorsOf(server, collection)))) throw error;
  }
}

export async function dropVector(server: QdrantServer, collection: string, model: string): Promise<void> {
  const name = vectorName(model);
  if (!(name in (await vectorsOf(server, collection)))) return;
  await server.ask(`drop vectors of ${collection}`, (client) => client.deleteVectorName(collection, name, { wait: true }));
}

async function vectorsOf(server: QdrantServer, collection: string): Promise<object> {
  const info = await server.ask(`tell about ${collection}`, (client) => client.getCollection(collection));
  return info.config.params.vectors ?? {};
}

/** Makes the collection for the store's own schema and models. */
export async function ensureMetaCollection(server: QdrantServer, names: CollectionNames): Promise<void> {
  await ensureCollection(server, { name: names.meta, vectors: {}, words: false, indexes: {} });
}

/** Answers whether something was missing. */
async function ensureCollection(server: QdrantServer, { name, vectors, words, indexes }: Wanted): Promise<boolean> {
  const { exists } = await server.ask(`look for ${name}`, (client) => client.collectionExists(name));
  if (!exists) await createCollection(server, { name, vectors, words, indexes });
  const info = await server.ask(`tell about ${name}`, (client) => client.getCollection(name));
  const missing = Object.entries(indexes).filter(([field]) => !(field in info.payload_schema));
  for (const [field_name, field_schema] of missing) {
    await server.ask(`index ${name}`, (client) => client.createPayloadIndex(name, { field_name, field_schema, wait: true }));
  }
  return missing.length > 0 || !exists;
}

async function createCollection(server: QdrantServer, { name, vectors, words }: Wanted): Promise<void> {
  const sparse = words ? { sparse_vectors: { [WORDS]: { modifier: 'idf' as const } } } : {};
  try {
    await server.ask(`make ${name}`, (client) => client.createCollection(name, { vectors, ...sparse, hnsw_config: HNSW }));
  } catch (error) {
    // Another process may have been faster.
    const { exists } = await server.ask(`look for ${name}`, (client) => client.collectionExists(name));
    if (!exists) throw error;
  }
}

async function putAnchor(server: QdrantServer, collection: string, layer: MemoryLayer): Promise<void> {
  const id = pointId('anchor', layer);
  const vector = { [WORDS]: { indices: [ANCHOR_WORD], values: [1] } };
  const point = { id, vector, payload: { tenant: ANCHOR_TENANT, shown: false } };
  await server.ask(`prepare ${collection}`, (client) =>
    client.upsert(collection, { points: [point], update_mode: 'insert_only', wait: true }),
  );
}

/**
 * The id of the point with these names: a UUID of version 8 from SHA-256, the same at every writer.
 *
 * Not version 5: with SHA-1 somebody could make two names with one id.
 */
export function pointId(...names: ReadonlyArray<string | number>): string {
  const bytes = createHash('sha256').update(JSON.stringify(names)).digest().subarray(0, 16);
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
