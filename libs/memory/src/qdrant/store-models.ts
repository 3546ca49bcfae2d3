import { errorCode, EtudeError } from '@etude/contracts/errors';
import { randomBytes } from 'node:crypto';
import type { Model, VectorModel } from '../record-store.js';
import { type CollectionNames, dropVector, ensureCollection, ensureCollections, pointId } from './collections.js';
import { requireReadable, requireSameDimension, storedModel } from '../vector-models.js';
import { decodeText, encodeText } from './record-points.js';
import type { QdrantServer } from './qdrant-server.js';
import { z } from 'zod';

/** Version of the stored data. A store of another version is refused. */
const SCHEMA = 1;
const SCHEMA_POINT = pointId('schema');
const MODELS_MAX = 1_000;
/** Conditional writes came with 1.17, adding vectors to a collection with 1.18. Older servers ignore the conditions. */
const SERVER_MIN = { major: 1, minor: 18 };

const VersionInfo = z.looseObject({ version: z.string().regex(/^\d+\.\d+/) });

/** @throws EtudeError MEMORY_VERSION for an old Qdrant, MEMORY_UNAVAILABLE for a server that isn't Qdrant */
export async function requireServer(server: QdrantServer): Promise<void> {
  const told: unknown = await server
    .ask('tell its version', (client) => client.versionInfo())
    .catch((error: unknown) => {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    });
  const { version } = VersionInfo.safeParse(told).data ?? {};
  if (version === undefined) {
    const message = `the server at ${server.where} returns no version, so it isn't Qdrant; check the address and its port, usually 6333 (ETUDE_QDRANT_URL)`;
    throw new EtudeError('MEMORY_UNAVAILABLE', message);
  }
  const [major = 0, minor = 0] = version.split('.', 2).map(Number);
  if (major > SERVER_MIN.major || (major === SERVER_MIN.major && minor >= SERVER_MIN.minor)) return;
  const message = `Qdrant at ${server.where} is ${version}; this release needs ${SERVER_MIN.major}.${SERVER_MIN.minor} or newer. Upgrade the server`;
  throw new EtudeError('MEMORY_VERSION', message);
}

/** Data of the whole store: its schema version, its secret, and its vector models. */
export class StoreModels {
  readonly #server: QdrantServer;
  readonly #names: CollectionNames;

  constructor(server: QdrantServer, names: CollectionNames) {
    this.#server = server;
    this.#names = names;
  }

  /** Creates what is missing and returns the store's secret. @throws EtudeError MEMORY_VERSION */
  async open(model: Model): Promise<string> {
    await ensureCollection(this.#server, this.#names.meta);
    await this.#insert(SCHEMA_POINT, { schema: SCHEMA, secret: randomBytes(16).toString('hex') });
    if ((await this.list()).length === 0) await this.#insert(this.#idOf(model.name), payloadOf(model, 'ready'));
    const secret = await this.check();
    const models = await this.list();
    requireReadable(models, model, this.#where);
    await ensureCollections(this.#server, this.#names, models);
    return secret;
  }

  /** Returns the store's secret. @throws EtudeError MEMORY_VERSION for another schema version, MEMORY_UNAVAILABLE if it is gone */
  async check(): Promise<string> {
    const { meta } = this.#names;
    const [point] = await this.#server.ask(`read ${meta}`, (client) => client.retrieve(meta, { ids: [SCHEMA_POINT] }));
    const { schema, secret } = point?.payload ?? {};
    if (schema === SCHEMA && typeof secret === 'string') return secret;
    if (schema === undefined) {
      const message = `the collection ${meta} on Qdrant at ${this.#server.where} is empty; restore it from a snapshot`;
      throw new EtudeError('MEMORY_UNAVAILABLE', message);
    }
    const message =
      `the collections ${meta} and its neighbours on Qdrant at ${this.#server.where} are of version ${JSON.stringify(schema)}, and this release reads ${SCHEMA}; ` +
      'run the release that wrote them, `etude memory export` there, and import into a new prefix here';
    throw new EtudeError('MEMORY_VERSION', message);
  }

  async list(): Promise<VectorModel[]> {
    const { meta } = this.#names;
    const { points } = await this.#server.ask(`read ${meta}`, (client) => client.scroll(meta, { limit: MODELS_MAX }));
    return points
      .flatMap(({ payload }) => (typeof payload?.['model'] === 'string' ? [modelOf(payload)] : []))
      .toSorted((a, b) => a.name.localeCompare(b.name));
  }

  /** @throws EtudeError MEMORY_VERSION */
  async add(model: Model): Promise<void> {
    await this.#insert(this.#idOf(model.name), payloadOf(model, 'building'));
    requireSameDimension(await this.require(model.name), model, this.#where);
    await ensureCollections(this.#server, this.#names, [model]);
  }

  async setReady(name: string): Promise<void> {
    const request = { payload: { state: 'ready' }, points: [this.#idOf(name)], wait: true };
    await this.#server.ask(`write to ${this.#names.meta}`, (client) => client.setPayload(this.#names.meta, request));
  }

  async drop(name: string): Promise<void> {
    for (const collection of Object.values(this.#names.layers)) await dropVector(this.#server, collection, name);
    const request = { points: [this.#idOf(name)], wait: true };
    await this.#server.ask(`write to ${this.#names.meta}`, (client) => client.delete(this.#names.meta, request));
  }

  /** @throws EtudeError NOT_FOUND */
  async require(name: string): Promise<VectorModel> {
    return storedModel(await this.list(), name, this.#where);
  }

  get #where(): string {
    return `the memory ${this.#names.meta} on Qdrant at ${this.#server.where}`;
  }

  #idOf(model: string): string {
    return pointId('model', model);
  }

  /** Leaves an existing point as it is. */
  async #insert(id: string, payload: Record<string, unknown>): Promise<void> {
    const request = { points: [{ id, payload, vector: {} }], update_mode: 'insert_only' as const, wait: true };
    await this.#server.ask(`write to ${this.#names.meta}`, (client) => client.upsert(this.#names.meta, request));
  }
}

function payloadOf({ name, dimension }: Model, state: VectorModel['state']): Record<string, unknown> {
  return { model: encodeText(name), dimension, state };
}

function modelOf(payload: Readonly<Record<string, unknown>>): VectorModel {
  const { model, dimension, state } = payload;
  return { name: decodeText(String(model)), dimension: Number(dimension), state: state === 'ready' ? 'ready' : 'building' };
}
