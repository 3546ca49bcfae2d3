import type { DatabaseSync } from 'node:sqlite';
import { requireScope } from '@etude/domain/ports/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { bestCandidates, type Candidate, type RecordStore, seenBy, type StoreQuery } from '../record-store.js';
import { applyChanges, knownRecord, prepareChange, removeRecords, StaleChange } from './record-writes.js';
import { countRecords, eachRecord, findRecords, kindCode, kindCodes, kindName, loadRecords, searchCondition } from './record-rows.js';
import { type SqliteStoreOptions, StoreFile } from './store-file.js';
import { type ModelRow, modelRows } from './store-schema.js';
import { fileDamage, purgeFile } from './file-upkeep.js';
import type { TenantRows } from './tenant-rows.js';
import {
  addModel,
  deleteVectors,
  dropModel,
  insertVectors,
  modelsIn,
  numberOfModel,
  setModelReady,
  vectorBytes,
  type VectorBytes,
} from './vectors.js';
import { storedModel } from '../vector-models.js';
import { cosinesOf, layerSize, nearest } from './nearest-records.js';
import { searchWords } from './words.js';

/** Opens a record store in one SQLite file, which several processes may open at once. @throws EtudeError as `openMemory` */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<RecordStore> {
  const { model } = options;
  const file = await StoreFile.open(options);
  return {
    name: 'sqlite',
    async write(tenant, changes, { unsynced = false } = {}) {
      requireScope({ tenant, agent: null });
      if (changes.length === 0) return [];
      const prepared = changes.map((change) => prepareChange(tenant, change, model));
      try {
        return await file.write({ tenant }, (rows) => applyChanges(rows, numberOfModel(rows, model, file), prepared), {
          enrols: true,
          unsynced,
        });
      } catch (error) {
        if (error instanceof StaleChange) return changes.map(() => false);
        throw error;
      }
    },
    load: (...args) => loadRecords(file, ...args),
    find: (...args) => findRecords(file, ...args),
    async search(scope, layer, query) {
      const vector = vectorBytes(query.vector, model);
      return file.read(seenBy(scope), (rows) => searchRecords(rows, layer, query, numberOfModel(rows, model, file), vector));
    },
    each: (...args) => eachRecord(file, ...args),
    count: (...args) => countRecords(file, ...args),
    remove: (...args) => removeRecords(file, ...args),
    purge: () => purgeFile(file),
    tenants: () => file.readWhole(tenantNames),
    models: async () => (await file.readWhole(modelRows)).map(({ id: _id, ...stored }) => stored),
    addModel: (added) => addModel(file, added),
    setModelReady: (name) => setModelReady(file, name),
    dropModel: (name) => dropModel(file, name),
    setVectors: (tenant, record, name, vectors) =>
      file.write({ tenant }, (rows) => setVectors(rows, storedModel(modelsIn(rows), name, file.where), record, vectors)),
    damage: () => fileDamage(file),
    diskBytes: () => file.diskBytes(),
    check: () => file.check(),
    close: () => file.close(),
  };
}

function tenantNames(db: DatabaseSync): string[] {
  const sql = 'SELECT name FROM tenant WHERE EXISTS (SELECT 1 FROM record WHERE record.tenant = tenant.id) ORDER BY name';
  return db
    .prepare(sql)
    .all()
    .map(({ name }) => String(name));
}

function setVectors(
  rows: TenantRows,
  stored: ModelRow,
  { layer, kind, key, revision }: Parameters<RecordStore['setVectors']>[1],
  vectors: Parameters<RecordStore['setVectors']>[3],
): boolean {
  const bytes = vectors.map((vector) => vectorBytes(vector, stored));
  const code = kindCode(layer, kind);
  const known = knownRecord(rows, code, key);
  if (known?.revision !== revision) return false;
  deleteVectors(rows, known.id, known.texts, stored.id);
  insertVectors(rows, stored.id, known.id, { ...known, layer, kind: known.shown === 1 ? code : -code }, bytes);
  return true;
}

/** @param model number of the store's model @param vector null: only words are searched */
function searchRecords(
  rows: TenantRows,
  layer: MemoryLayer,
  query: StoreQuery,
  model: number,
  vector: VectorBytes | null,
): readonly Candidate[] {
  const { limit } = query;
  const size = layerSize(rows, layer);
  if (limit <= 0 || kindCodes(layer, query.kinds).length === 0 || size === null) return [];
  const worded = searchWords(rows, { layer, text: query.text, worded: size.worded, limit }, searchCondition(rows, layer, query));
  const ids = worded.map(({ id }) => id);
  const known = vector === null ? new Map<number, number>() : cosinesOf(rows, model, vector, ids);
  const cosines = vector === null ? known : nearest(rows, { layer, query, model, vector, size, known });
  const unknown = ids.filter((id) => !cosines.has(id));
  const bm25s = new Map(worded.map(({ id, bm25 }) => [id, bm25]));
  const loaded = rows.tuples<readonly [id: number, kind: number, key: string, createdAt: number, worth: number]>(
    `SELECT record.id, record.kind, record_key, created_at, worth
     FROM json_each(:ids) CROSS JOIN record ON record.id = value WHERE record.tenant = :tenant`,
    { ids: JSON.stringify([...cosines.keys(), ...unknown]) },
  );
  const found = loaded.map(([id, kind, key, createdAt, worth]) => {
    const cosine = cosines.get(id) ?? known.get(id) ?? 0;
    return { kind: kindName(kind), key, createdAt, worth, cosine, bm25: bm25s.get(id) ?? 0 };
  });
  return bestCandidates(found, limit);
}
