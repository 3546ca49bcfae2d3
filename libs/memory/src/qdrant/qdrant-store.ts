import { EtudeError, errorCode } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import type {
  Candidates,
  Change,
  Owners,
  RecordFilter,
  RecordKind,
  RecordStore,
  StoredRecord,
  StoreOptions,
  StoreQuery,
  StoreReport,
  VectorModel,
} from '../record-store.js';
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
  return new QdrantStore({ server, names, models, secret, model: options.model, now: options.now ?? Date.now });
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

class QdrantStore implements RecordStore {
  readonly name = 'qdrant';
  readonly #opened: Opened;
  readonly #worded: WordedCounts;

  constructor(opened: Opened) {
    this.#opened = opened;
    this.#worded = new WordedCounts(opened.now);
  }

  async write(tenant: string, changes: readonly Change[]): Promise<readonly boolean[]> {
    const { names, model, models } = this.#opened;
    const { points, parts } = this.#ownedBy({ tenant });
    const deps = { points, names, parts, vectors: this.#vectorsOf(points), model, models: () => models.list() };
    return new RecordWrites(deps).write(changes);
  }

  async load(scope: ReadScope, layer: MemoryLayer, kind: RecordKind, keys: readonly string[]): Promise<readonly StoredRecord[]> {
    return this.#seenBy(scope).reader.load(layer, kind, keys);
  }

  async find(
    scope: ReadScope,
    layer: MemoryLayer,
    filter: RecordFilter,
    { order, limit, afterKey }: { order: 'newest' | 'key'; limit: number; afterKey?: string },
  ): Promise<readonly StoredRecord[]> {
    const must = filterConditions(filter);
    const { reader } = this.#seenBy(scope);
    return order === 'newest' ? reader.newest(layer, must, limit) : reader.byKey(layer, must, limit, afterKey);
  }

  async search(scope: ReadScope, layer: MemoryLayer, query: StoreQuery): Promise<Candidates> {
    const { names, model } = this.#opened;
    const must = filterConditions({ ...query, shown: query.shown ?? true });
    const { points } = this.#seenBy(scope);
    const vectors = this.#vectorsOf(points);
    const deps = { points, names, vectors, model, worded: this.#worded };
    return searchCandidates(deps, layer, query, must);
  }

  async *each(owners: Owners, layer: MemoryLayer, filter: RecordFilter): AsyncGenerator<readonly StoredRecord[]> {
    yield* this.#ownedBy(owners).reader.each(layer, { must: filterConditions(filter) });
  }

  async count(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
    return this.#ownedBy(owners).points.count(this.#opened.names.layers[layer], { must: filterConditions(filter) });
  }

  async remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
    const { points, parts } = this.#ownedBy(owners);
    const { names, now } = this.#opened;
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
    if (Object.entries(filter).every(([name, value]) => name === 'kinds' || value === undefined)) {
      await new BodyParts(points, names.parts, now).dropOf([is('layer', layer), ...must]);
    }
    return removed;
  }

  purge(): Promise<readonly string[]> {
    return purge(this.#opened.server, this.#opened.names);
  }

  tenants(): Promise<readonly string[]> {
    const { server, names } = this.#opened;
    return tenantsOf(server, Object.values(names.layers));
  }

  models(): Promise<readonly VectorModel[]> {
    return this.#opened.models.list();
  }

  addModel(model: StoreOptions['model']): Promise<void> {
    return this.#opened.models.add(model);
  }

  setModelReady(name: string): Promise<void> {
    return this.#opened.models.setReady(name);
  }

  dropModel(name: string): Promise<void> {
    return this.#opened.models.drop(name);
  }

  async *withoutVectors(owners: Owners, layer: MemoryLayer, model: string): AsyncGenerator<readonly StoredRecord[]> {
    const { reader } = this.#ownedBy(owners);
    const must = [is('worded', true)];
    await this.#opened.models.require(model);
    yield* reader.each(layer, { must, mustNot: [{ has_vector: vectorName(model) }, is('blank', model)] });
  }

  async setVectors(
    tenant: string,
    record: Pick<StoredRecord, 'layer' | 'kind' | 'key' | 'revision'>,
    model: string,
    vectors: ReadonlyArray<Float32Array | null>,
  ): Promise<boolean> {
    const { points } = this.#ownedBy({ tenant });
    const dense = denseOf(vectors, await this.#opened.models.require(model));
    const id = recordId(tenant, record.kind, record.key);
    const must = [{ has_id: [id] }, is('revision', record.revision)];
    const collection = this.#opened.names.layers[record.layer];
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
    return after.points.some(({ payload }) => revisionIn(payload) === record.revision);
  }

  reconcile(): Promise<StoreReport> {
    const { server, names, model, now } = this.#opened;
    return reconcile({ server, names, model: model.name, now, partsOf: (points) => new BodyParts(points, names.parts, now) });
  }

  size(): Promise<{ readonly diskBytes: number | null; readonly memoryBytes: number | null }> {
    return sizeOf(this.#opened.server, this.#opened.names);
  }

  check(): Promise<void> {
    return this.#opened.models.check();
  }

  close(): void {
    this.#opened.server.close();
  }

  #seenBy(scope: ReadScope): TenantStore {
    return this.#through(TenantPoints.seenBy(this.#opened.server, scope));
  }

  #ownedBy(owners: Owners): TenantStore {
    return this.#through(TenantPoints.ownedBy(this.#opened.server, owners));
  }

  /** Parts are the tenant's: who may see a record may see what it names. */
  #through(points: TenantPoints): TenantStore {
    const { server, names, now } = this.#opened;
    const parts = new BodyParts(TenantPoints.of(server, points.tenant), names.parts, now);
    return { points, parts, reader: new RecordReader(points, names, parts) };
  }

  #vectorsOf({ tenant }: TenantPoints): PointVectors {
    return new PointVectors(this.#opened.secret, tenant);
  }
}
