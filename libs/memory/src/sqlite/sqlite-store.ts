import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EtudeError } from '@etude/contracts/errors';
import { requireScope } from '@etude/domain/ports/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import {
  candidateLists,
  type Candidates,
  type FindPage,
  ownedBy,
  type Owners,
  type RecordFilter,
  type RecordStore,
  seenBy,
  type StoredRecord,
  type StoreQuery,
} from '../record-store.js';
import { applyChanges, knownRecord, prepareChange, removeRecords, StaleChange } from './record-writes.js';
import {
  filterCondition,
  kindCode,
  kindCodes,
  kindName,
  layerCondition,
  looksUp,
  searchCondition,
  STORED_COLUMNS,
  STORED_TABLES,
  storedRecord,
  type StoredRow,
} from './record-rows.js';
import { type SqliteStoreOptions, StoreFile } from './store-file.js';
import { type ModelRow, modelRows } from './store-schema.js';
import { fileDamage, purgeFile } from './file-upkeep.js';
import type { TenantRows, Values } from './tenant-rows.js';
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

/**
 * Opens a record store in one SQLite file, which several processes may open at once.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE (missing rights, damage, a lock held too long), MEMORY_VERSION (another layout or embedder),
 *   MEMORY_FULL
 */
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

/** Returns false if the record is no longer at that revision. */
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
  if (known.texts !== vectors.length) {
    const message = `${vectors.length} vectors were given for the ${known.texts} texts of ${JSON.stringify(key)}; give one for each`;
    throw new EtudeError('EMBEDDING_LENGTH_WRONG', message);
  }
  deleteVectors(rows, known.id, known.texts, stored.id);
  insertVectors(rows, stored.id, known.id, { ...known, layer, kind: known.shown === 1 ? code : -code }, bytes);
  return true;
}

/** A page ends at whichever limit is reached first. */
const PAGE_RECORDS = 500;
const PAGE_CHARS = 4_000_000;
type Reads<name extends 'load' | 'find' | 'count'> = [StoreFile, ...Parameters<RecordStore[name]>];

async function loadRecords(...[file, scope, layer, kind, keys]: Reads<'load'>): Promise<StoredRecord[]> {
  return file.read(seenBy(scope), (rows) => {
    const sql = `SELECT ${STORED_COLUMNS} FROM json_each(:keys) CROSS JOIN ${STORED_TABLES}
      WHERE record.tenant = :tenant AND kind = :kind AND record_key = json_each.value${rows.within}`;
    const found = rows.all<StoredRow>(sql, { kind: kindCode(layer, kind), keys: JSON.stringify(keys) });
    return found.map((row) => storedRecord(scope.tenant, layer, row));
  });
}

async function findRecords(...[file, scope, layer, filter, page]: Reads<'find'>): Promise<StoredRecord[]> {
  const { sql, values } = filterCondition(filter);
  const { order, limit } = page;
  const [behind, after] = placeCondition(page);
  const by = order === 'key' ? 'record_key' : 'created_at DESC, record_key DESC';
  return file.read(seenBy(scope), (rows) =>
    rows
      .all<StoredRow>(
        `SELECT ${STORED_COLUMNS} FROM ${STORED_TABLES}
         WHERE ${layerCondition(layer, filter)}${sql}${behind}${rows.within} ORDER BY ${by} LIMIT :limit`,
        { ...values, ...after, limit: Math.max(0, limit) },
      )
      .map((row) => storedRecord(scope.tenant, layer, row)),
  );
}

function placeCondition({ order, afterKey, after }: FindPage): readonly [sql: string, values: Values] {
  if (order === 'key') return afterKey === undefined ? ['', {}] : [' AND record_key > :afterKey', { afterKey }];
  if (after === undefined) return ['', {}];
  return [' AND (created_at, record_key) < (:afterAt, :afterKey)', { afterAt: after.createdAt, afterKey: after.key }];
}

async function countRecords(...[file, owners, layer, filter]: Reads<'count'>): Promise<number> {
  const { sql, values } = filterCondition(filter);
  return file.read(ownedBy(owners), (rows) => {
    const count = `SELECT count(*) AS n FROM record WHERE ${layerCondition(layer, filter)}${sql}${rows.within}`;
    return rows.all<{ n: number }>(count, values)[0]?.n ?? 0;
  });
}

/** By kind, then in key order. Each page is one transaction. */
async function* eachRecord(
  file: StoreFile,
  owners: Owners,
  layer: MemoryLayer,
  filter: RecordFilter,
): AsyncGenerator<readonly StoredRecord[]> {
  const { sql, values } = filterCondition(filter);
  for (const kind of kindCodes(layer, filter.kinds)) {
    for (let after = ''; ;) {
      const page = await file.read(ownedBy(owners), (rows) => pageOf(rows, looksUp(filter) ? '+' : '', sql, { ...values, kind, after }));
      const last = page.at(-1);
      if (last === undefined) break;
      yield page.map((row) => storedRecord(owners.tenant, layer, row));
      after = last.key;
      // Reading is synchronous, so other work of this process gets its turn between pages.
      await nextTurn();
    }
  }
}

/** `off`: see `layerCondition`. */
function pageOf(rows: TenantRows, off: '+' | '', sql: string, values: Values): StoredRow[] {
  const page: StoredRow[] = [];
  let chars = 0;
  const found = rows.iterate<StoredRow>(
    `SELECT ${STORED_COLUMNS} FROM ${STORED_TABLES}
     WHERE ${off}record.tenant = :tenant AND ${off}record.kind = :kind AND record_key > :after${sql}${rows.within} ORDER BY record_key LIMIT ${PAGE_RECORDS}`,
    values,
  );
  for (const row of found) {
    page.push(row);
    chars += row.body.length + row.text.length;
    if (chars >= PAGE_CHARS) break;
  }
  return page;
}

/**
 * Both lists, read from one snapshot.
 *
 * @param model number of the store's model
 * @param vector null: only words are searched
 */
function searchRecords(rows: TenantRows, layer: MemoryLayer, query: StoreQuery, model: number, vector: VectorBytes | null): Candidates {
  const { limit } = query;
  const size = layerSize(rows, layer);
  if (limit <= 0 || kindCodes(layer, query.kinds).length === 0 || size === null) return { dense: [], words: [] };
  const worded = searchWords(rows, { layer, text: query.text, worded: size.worded, limit }, searchCondition(rows, layer, query));
  const ids = worded.map(({ id }) => id);
  const known = vector === null ? new Map<number, number>() : cosinesOf(rows, model, vector, ids);
  const cosines = vector === null ? known : nearest(rows, { layer, query, model, vector, size, known });
  const unknown = ids.filter((id) => !cosines.has(id));
  const bm25s = new Map(worded.map(({ id, bm25 }) => [id, bm25]));
  const loaded = loadCandidates(rows, [...cosines.keys(), ...unknown]);
  const records = new Map(loaded.map(({ id, kind, ...row }) => [id, { kind: kindName(kind), ...row }]));
  const cosineOf = (id: number) => cosines.get(id) ?? known.get(id) ?? 0;
  return candidateLists({ records, near: cosines.keys(), bm25s, cosineOf }, limit);
}

type CandidateRow = Pick<StoredRow, 'kind' | 'key' | 'createdAt' | 'worth'> & { readonly id: number };

function loadCandidates(rows: TenantRows, ids: readonly number[]): CandidateRow[] {
  return rows.all<CandidateRow>(
    `SELECT record.id AS id, record.kind AS kind, record_key AS key, created_at AS createdAt, worth
     FROM json_each(:ids) CROSS JOIN record ON record.id = value WHERE record.tenant = :tenant`,
    { ids: JSON.stringify(ids) },
  );
}
