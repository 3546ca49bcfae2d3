import { candidateLists } from '../candidate-lists.js';
import type { Candidates, Owners, RecordFilter, RecordStore, StoredRecord, StoreQuery } from '../record-store.js';
import { cosinesOf, nearest } from './nearest-records.js';
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
import type { StoreFile } from './store-file.js';
import type { TenantRows, Values } from './tenant-rows.js';
import type { VectorBytes } from './vectors.js';
import { searchWords } from './words.js';
import { ownedBy, seenBy } from '../tenant-view.js';
import type { MemoryLayer } from '@etude/contracts/task';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A page ends at whichever limit is reached first. */
const PAGE_RECORDS = 500;
const PAGE_CHARS = 4_000_000;
type Reads<name extends 'load' | 'find' | 'count'> = [StoreFile, ...Parameters<RecordStore[name]>];

export async function loadRecords(...[file, scope, layer, kind, keys]: Reads<'load'>): Promise<StoredRecord[]> {
  return file.read(seenBy(scope), (rows) => {
    const sql = `SELECT ${STORED_COLUMNS} FROM ${STORED_TABLES}
      WHERE record.tenant = :tenant AND kind = :kind AND record_key = :key${rows.within}`;
    return keys.flatMap((key) => {
      const row = rows.all<StoredRow>(sql, { kind: kindCode(layer, kind), key })[0];
      return row === undefined ? [] : [storedRecord(scope.tenant, layer, row)];
    });
  });
}

export async function findRecords(...[file, scope, layer, filter, { order, limit, afterKey }]: Reads<'find'>): Promise<StoredRecord[]> {
  const { sql, values } = filterCondition(filter);
  const after: Values = order === 'key' && afterKey !== undefined ? { afterKey } : {};
  const behind = 'afterKey' in after ? ' AND record_key > :afterKey' : '';
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

export async function countRecords(...[file, owners, layer, filter]: Reads<'count'>): Promise<number> {
  const { sql, values } = filterCondition(filter);
  return file.read(ownedBy(owners), (rows) => {
    const count = `SELECT count(*) AS n FROM record WHERE ${layerCondition(layer, filter)}${sql}${rows.within}`;
    return rows.all<{ n: number }>(count, values)[0]?.n ?? 0;
  });
}

/** By kind, then in key order. Each page is one transaction. */
export async function* eachRecord(
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

export interface VectorQuery {
  /** Number of the store's model. */
  readonly model: number;
  /** null: only words are searched. */
  readonly vector: VectorBytes | null;
}

/** Both lists, read from one snapshot. */
export function searchRecords(rows: TenantRows, layer: MemoryLayer, query: StoreQuery, { model, vector }: VectorQuery): Candidates {
  const { limit } = query;
  if (limit <= 0 || kindCodes(layer, query.kinds).length === 0) return { dense: [], words: [] };
  const worded = searchWords(rows, layer, query.text, searchCondition(rows, layer, query), limit);
  const ids = worded.map(({ id }) => id);
  const known = vector === null ? new Map<number, number>() : cosinesOf(rows, model, vector, ids);
  const cosines = vector === null ? known : nearest(rows, { layer, query, model, vector, known });
  const unknown = ids.filter((id) => !cosines.has(id));
  const bm25s = new Map(worded.map(({ id, bm25 }) => [id, bm25]));
  const loaded = loadCandidates(rows, [...cosines.keys(), ...unknown]);
  const records = new Map(loaded.map(({ id, kind, ...row }) => [id, { kind: kindName(kind), ...row }]));
  const cosineOf = (id: number) => cosines.get(id) ?? known.get(id) ?? 0;
  return candidateLists({ records, near: cosines.keys(), bm25s, cosineOf }, limit);
}

interface CandidateRow {
  readonly id: number;
  readonly kind: number;
  readonly key: string;
  readonly createdAt: number;
  readonly worth: number;
}

function loadCandidates(rows: TenantRows, ids: readonly number[]): CandidateRow[] {
  return rows.all<CandidateRow>(
    `SELECT record.id AS id, record.kind AS kind, record_key AS key, created_at AS createdAt, worth
     FROM json_each(:ids) CROSS JOIN record ON record.id = value WHERE record.tenant = :tenant`,
    { ids: JSON.stringify(ids) },
  );
}
