import { existsSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';
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
import { kindCode } from './record-rows.js';
import { RecordReads, searchRecords } from './record-reads.js';
import { RecordRemoval } from './record-removal.js';
import { applyChanges, prepareChange, StaleChange } from './record-writes.js';
import { gone, StoreFile } from './store-file.js';
import { reconcileFile } from './store-reconciliation.js';
import { deleteVectors, insertVectors, vectorBytes, VectorModels } from './vectors.js';

export interface SqliteStoreOptions extends StoreOptions {
  /** Created, with its directory, where there is none. */
  readonly path: string;
  /** How long to wait for another process that holds the lock; 5,000 ms by default. */
  readonly lockWaitMs?: number;
  /** Beyond it writes are refused with MEMORY_FULL; by default as large as the disk. */
  readonly sizeMaxMiB?: number;
}

const LOCK_WAIT_MS = 5_000;
/** By this process: a file that is gone since is not made anew, behind the back of others that still hold it open. */
const OPENED = new Set<string>();

/**
 * Opens a record store in one SQLite file, which several processes may hold open at once.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE (missing rights, damage, a lock held too long), MEMORY_VERSION (another layout or
 *   embedder), MEMORY_FULL
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<RecordStore> {
  const { path, model, lockWaitMs = LOCK_WAIT_MS, sizeMaxMiB = null } = options;
  if (OPENED.has(path) && !existsSync(path)) throw gone(path);
  const file = await StoreFile.open({ path, model, lockWaitMs, sizeMaxMiB });
  OPENED.add(path);
  return new SqliteRecordStore(file, model);
}

class SqliteRecordStore implements RecordStore {
  readonly name = 'sqlite';
  readonly #file: StoreFile;
  readonly #model: StoreOptions['model'];
  readonly #models: VectorModels;
  readonly #reads: RecordReads;
  readonly #removal: RecordRemoval;

  constructor(file: StoreFile, model: StoreOptions['model']) {
    this.#file = file;
    this.#model = model;
    this.#models = new VectorModels(file);
    this.#reads = new RecordReads(file);
    this.#removal = new RecordRemoval(file);
  }

  async write(tenant: string, changes: readonly Change[]): Promise<readonly boolean[]> {
    requireScope({ tenant, agent: null });
    if (changes.length === 0) return [];
    const prepared = changes.map((change) => prepareChange(tenant, change, this.#model));
    try {
      return await this.#file.write(tenant, (rows) => applyChanges(rows, this.#models.numberOf(rows, this.#model), prepared));
    } catch (error) {
      if (error instanceof StaleChange) return changes.map(() => false);
      throw error;
    }
  }

  load(scope: ReadScope, layer: MemoryLayer, kind: RecordKind, keys: readonly string[]): Promise<readonly StoredRecord[]> {
    return this.#reads.load(scope, layer, kind, keys);
  }

  find(
    scope: ReadScope,
    layer: MemoryLayer,
    filter: RecordFilter,
    page: Parameters<RecordStore['find']>[3],
  ): Promise<readonly StoredRecord[]> {
    return this.#reads.find(scope, layer, filter, page);
  }

  async search(scope: ReadScope, layer: MemoryLayer, query: StoreQuery): Promise<Candidates> {
    const vector = vectorBytes(query.vector, this.#model);
    return this.#file.read(scope, (rows) => searchRecords(rows, layer, query, { model: this.#models.numberOf(rows, this.#model), vector }));
  }

  each(owners: Owners, layer: MemoryLayer, filter: RecordFilter): AsyncIterable<readonly StoredRecord[]> {
    return this.#reads.each(owners, layer, filter);
  }

  count(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
    return this.#reads.count(owners, layer, filter);
  }

  remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
    return this.#removal.remove(owners, layer, filter);
  }

  purge(): Promise<readonly string[]> {
    return this.#removal.purge();
  }

  tenants(): Promise<readonly string[]> {
    return this.#file.readWhole((file) =>
      file
        .all<{ name: string }>('SELECT name FROM tenant WHERE EXISTS (SELECT 1 FROM record WHERE record.tenant = tenant.id) ORDER BY name')
        .map(({ name }) => name),
    );
  }

  models(): Promise<readonly VectorModel[]> {
    return this.#models.list();
  }

  addModel(model: StoreOptions['model']): Promise<void> {
    return this.#models.add(model);
  }

  setModelReady(name: string): Promise<void> {
    return this.#models.setReady(name);
  }

  dropModel(name: string): Promise<void> {
    return this.#models.drop(name);
  }

  async *withoutVectors(owners: Owners, layer: MemoryLayer, model: string): AsyncIterable<readonly StoredRecord[]> {
    const { id } = await this.#file.readOwned(owners, (rows) => this.#models.find(rows, model));
    const missing =
      ' AND record.texts > 0 AND NOT EXISTS (SELECT 1 FROM embedding WHERE embedding.model = :model AND embedding.record = record.id)';
    yield* this.#reads.each(owners, layer, {}, missing, { model: id });
  }

  async setVectors(
    tenant: string,
    { layer, kind, key, revision }: Pick<StoredRecord, 'layer' | 'kind' | 'key' | 'revision'>,
    model: string,
    vectors: ReadonlyArray<Float32Array | null>,
  ): Promise<boolean> {
    return this.#file.writeOwned({ tenant }, (rows) => {
      const stored = this.#models.find(rows, model);
      const bytes = vectors.map((vector) => vectorBytes(vector, stored));
      const known = rows.all<VectoredRecord>(
        `SELECT id, texts, agent, user, worth, created_at AS createdAt, shown FROM record
         WHERE tenant = :tenant AND kind = :kind AND record_key = :key AND revision = :revision`,
        { kind: kindCode(layer, kind), key, revision },
      )[0];
      if (known === undefined) return false;
      requireEach(known.texts, vectors.length, key);
      deleteVectors(rows, known.id, known.texts, stored.id);
      const code = kindCode(layer, kind);
      insertVectors(rows, stored.id, known.id, { ...known, layer, kind: known.shown === 1 ? code : -code }, bytes);
      return true;
    });
  }

  reconcile(): Promise<StoreReport> {
    return reconcileFile(this.#file);
  }

  async size(): Promise<{ readonly diskBytes: number | null; readonly memoryBytes: number | null }> {
    return { diskBytes: this.#file.diskBytes(), memoryBytes: null };
  }

  check(): Promise<void> {
    return this.#file.check();
  }

  close(): void {
    this.#file.close();
  }
}

interface VectoredRecord {
  readonly id: number;
  readonly texts: number;
  readonly agent: number;
  readonly user: number;
  readonly worth: number;
  readonly createdAt: number;
  readonly shown: number;
}

function requireEach(texts: number, vectors: number, key: string): void {
  if (texts === vectors) return;
  throw new EtudeError(
    'EMBEDDING_LENGTH_WRONG',
    `${vectors} vectors were given for the ${texts} texts of ${JSON.stringify(key)}; give one for each`,
  );
}
