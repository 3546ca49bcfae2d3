import { EtudeError } from '@etude/contracts/errors';
import { seenBy } from '../tenant-view.js';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { RecordStore, StoreOptions } from '../record-store.js';
import { countRecords, eachRecord, findRecords, loadRecords, searchRecords } from './record-reads.js';
import { removeRecords } from './record-removal.js';
import { kindCode } from './record-rows.js';
import { applyChanges, knownRecord, prepareChange, StaleChange } from './record-writes.js';
import { StoreFile, type WholeFile } from './store-file.js';
import { fileDamage, purgeFile } from './file-upkeep.js';
import type { TenantRows } from './tenant-rows.js';
import { deleteVectors, insertVectors, vectorBytes, VectorModels } from './vectors.js';

export interface SqliteStoreOptions extends StoreOptions {
  /** The file and its directory are created if they don't exist. */
  readonly path: string;
  /** How long to wait for another process that holds the lock, in ms; default 30,000. */
  readonly lockWaitMs?: number;
  /** Largest file size. Larger writes are refused with MEMORY_FULL. Default: no limit but the disk. */
  readonly sizeMaxMiB?: number;
}

/** As long as another process may take to rewrite a large file. */
const LOCK_WAIT_MS = 30_000;

/**
 * Opens a record store in one SQLite file, which several processes may open at once.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE (missing rights, damage, a lock held too long), MEMORY_VERSION (another layout or embedder),
 *   MEMORY_FULL
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<RecordStore> {
  const { path, model, lockWaitMs = LOCK_WAIT_MS, sizeMaxMiB = null } = options;
  const file = await StoreFile.open({ path, model, lockWaitMs, sizeMaxMiB });
  const models = new VectorModels(file);
  return {
    name: 'sqlite',
    async write(tenant, changes) {
      requireScope({ tenant, agent: null });
      if (changes.length === 0) return [];
      const prepared = changes.map((change) => prepareChange(tenant, change, model));
      try {
        return await file.write({ tenant }, (rows) => applyChanges(rows, models.numberOf(rows, model), prepared), { enrols: true });
      } catch (error) {
        if (error instanceof StaleChange) return changes.map(() => false);
        throw error;
      }
    },
    load: (...args) => loadRecords(file, ...args),
    find: (...args) => findRecords(file, ...args),
    async search(scope, layer, query) {
      const vector = vectorBytes(query.vector, model);
      return file.read(seenBy(scope), (rows) => searchRecords(rows, layer, query, { model: models.numberOf(rows, model), vector }));
    },
    each: (...args) => eachRecord(file, ...args),
    count: (...args) => countRecords(file, ...args),
    remove: (...args) => removeRecords(file, ...args),
    purge: () => purgeFile(file),
    tenants: () => file.readWhole(tenantNames),
    models: () => models.list(),
    addModel: (added) => models.add(added),
    setModelReady: (name) => models.setReady(name),
    dropModel: (name) => models.drop(name),
    setVectors: (tenant, record, name, vectors) =>
      file.write({ tenant }, (rows) => setVectors(rows, models.find(rows, name), record, vectors)),
    damage: () => fileDamage(file),
    diskBytes: () => file.diskBytes(),
    check: () => file.check(),
    close: () => file.close(),
  };
}

function tenantNames(file: WholeFile): string[] {
  const sql = 'SELECT name FROM tenant WHERE EXISTS (SELECT 1 FROM record WHERE record.tenant = tenant.id) ORDER BY name';
  return file.all<{ name: string }>(sql).map(({ name }) => name);
}

/** Returns false if the record is no longer at that revision. */
function setVectors(
  rows: TenantRows,
  stored: ReturnType<VectorModels['find']>,
  { layer, kind, key, revision }: Parameters<RecordStore['setVectors']>[1],
  vectors: Parameters<RecordStore['setVectors']>[3],
): boolean {
  const bytes = vectors.map((vector) => vectorBytes(vector, stored));
  const code = kindCode(layer, kind);
  const known = knownRecord(rows, code, key);
  if (known?.revision !== revision) return false;
  if (known.texts !== vectors.length)
    throw new EtudeError(
      'EMBEDDING_LENGTH_WRONG',
      `${vectors.length} vectors were given for the ${known.texts} texts of ${JSON.stringify(key)}; give one for each`,
    );
  deleteVectors(rows, known.id, known.texts, stored.id);
  insertVectors(rows, stored.id, known.id, { ...known, layer, kind: known.shown === 1 ? code : -code }, bytes);
  return true;
}
