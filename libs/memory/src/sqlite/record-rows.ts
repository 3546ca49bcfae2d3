import {
  type Fields,
  type FindPage,
  LAYERS,
  type MemoryRecord,
  ownedBy,
  RECORD_FIELDS,
  RECORD_KINDS,
  type RecordField,
  type RecordFilter,
  type RecordKind,
  type RecordStore,
  seenBy,
  type StoredRecord,
  type StoreQuery,
} from '../record-store.js';
import type { StoreFile } from './store-file.js';
import type { TenantRows, Value, Values } from './tenant-rows.js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MemoryLayer } from '@etude/contracts/task';

/** Layers, fields and kinds are stored as their positions in LAYERS, RECORD_FIELDS and RECORD_KINDS. So only append to these lists. */
export const layerCode = (layer: MemoryLayer): number => LAYERS.indexOf(layer) + 1;
const fieldCode = (field: RecordField): number => RECORD_FIELDS.indexOf(field) + 1;
const KINDS_OF_LAYER = 10;

export function kindName(code: number): RecordKind {
  const layer = LAYERS[Math.floor((code - 1) / KINDS_OF_LAYER)] ?? 'semantic';
  return RECORD_KINDS[layer][(code - 1) % KINDS_OF_LAYER] ?? 'fact';
}

/** The number of a kind. 0, which no record has, if the layer lacks the kind. */
export function kindCode(layer: MemoryLayer, kind: RecordKind): number {
  const place = (RECORD_KINDS[layer] as readonly RecordKind[]).indexOf(kind);
  return place === -1 ? 0 : (layerCode(layer) - 1) * KINDS_OF_LAYER + place + 1;
}

export function kindCodes(layer: MemoryLayer, kinds: RecordFilter['kinds']): readonly number[] {
  return (kinds ?? RECORD_KINDS[layer]).map((kind) => kindCode(layer, kind)).filter((code) => code > 0);
}

/** Part of a WHERE clause with its bound values. Starts with " AND". */
export interface Condition {
  readonly sql: string;
  readonly values: Readonly<Record<string, Value>>;
}

/**
 * Selects the tenant's records of a layer. If the filter looks up fields, few records match, but SQLite can't know that. Plus signs then
 * keep SQLite from using the tenant's index instead of the fields' index.
 */
export function layerCondition(layer: MemoryLayer, filter: RecordFilter): string {
  const off = looksUp(filter) ? '+' : '';
  return `${off}record.tenant = :tenant AND ${off}record.kind IN (${kindCodes(layer, filter.kinds).join(', ')})`;
}

export function looksUp({ where = {} }: RecordFilter): boolean {
  return Object.values(where).some((value) => value !== undefined);
}

/** A filter without its kinds, on columns of `record`. */
export function filterCondition(filter: RecordFilter): Condition {
  const values: Record<string, Value> = {};
  let sql = fieldsCondition(filter, values);
  if (filter.keys !== undefined) {
    values['keys'] = JSON.stringify(filter.keys);
    sql = ` AND record_key IN (SELECT value FROM json_each(:keys))${sql}`;
  }
  if (filter.shown !== undefined) sql += ` AND record.shown = ${filter.shown ? 1 : 0}`;
  for (const [name, condition] of BOUNDS) {
    const bound = filter[name];
    if (bound === undefined) continue;
    values[name] = bound;
    sql += condition;
  }
  return { sql, values };
}

const BOUNDS = [
  ['createdSince', ' AND record.created_at >= :createdSince'],
  ['createdBefore', ' AND record.created_at < :createdBefore'],
  ['worthMin', ' AND record.worth >= :worthMin'],
  [
    'withoutVectorsOf',
    ` AND record.texts > 0 AND NOT EXISTS (SELECT 1 FROM embedding CROSS JOIN model ON model.id = embedding.model
      WHERE model.name = :withoutVectorsOf AND embedding.record = record.id)`,
  ],
] as const;

export function searchCondition(rows: TenantRows, layer: MemoryLayer, query: StoreQuery): Condition {
  const { sql, values } = filterCondition({ ...query, shown: query.shown ?? true });
  const within = rows.within.replaceAll(' AND agent', ' AND record.agent').replaceAll(' AND user', ' AND record.user');
  return { sql: ` AND record.kind IN (${kindCodes(layer, query.kinds).join(', ')})${sql}${within}`, values };
}

/** The most selective fields first: their values have few records each. */
const FEWEST_FIRST = RECORD_FIELDS.toSorted((a, b) => placeOf(a) - placeOf(b));

function placeOf(field: RecordField): number {
  return field === 'status' || field === 'archived' ? 2 : field === 'category' ? 1 : 0;
}

/** Looks up the few records that the first field selects, and checks the other fields of each. A look-up of a status could yield every record. */
function fieldsCondition({ where = {} }: RecordFilter, values: Record<string, Value>): string {
  const wantedFields = FEWEST_FIRST.filter((field) => where[field] !== undefined);
  return wantedFields
    .map((field, place) => {
      const wanted = where[field] ?? [];
      const names = (typeof wanted === 'string' ? [wanted] : wanted).map((value, i) => {
        values[`${field}${i}`] = value;
        return `:${field}${i}`;
      });
      const matches = `FROM record_field WHERE tenant = :tenant AND field = ${fieldCode(field)} AND value IN (${names.join(', ')})`;
      if (place === 0) return ` AND record.id IN (SELECT record_field.record ${matches})`;
      return ` AND EXISTS (SELECT 1 ${matches} AND record_field.record = record.id)`;
    })
    .join('');
}

const STORED_COLUMNS = `record.kind AS kind, record_key AS key, created_at AS createdAt, worth, shown, revision, fields, title, text,
  sources, body, (SELECT name FROM principal WHERE principal.id = agent) AS agent, (SELECT name FROM principal WHERE principal.id = user) AS user`;

const STORED_TABLES = 'record CROSS JOIN record_body ON record_body.id = record.id';
interface StoredRow
  extends
    Pick<StoredRecord, 'key' | 'createdAt' | 'worth' | 'revision' | 'title' | 'text' | 'body'>,
    Readonly<Record<'kind' | 'shown', number> & Record<'fields' | 'sources' | 'agent', string>> {
  readonly user: string | null;
}

function storedRecord(tenant: string, layer: MemoryLayer, row: StoredRow): StoredRecord {
  const { kind, shown, fields, sources, agent, user, ...same } = row;
  return {
    ...same,
    layer,
    kind: kindName(kind),
    scope: { tenant, agent, user },
    shown: shown === 1,
    fields: JSON.parse(fields) as Fields,
    sources: JSON.parse(sources) as string[],
  };
}

const GIVEN_FIELDS = "SELECT :tenant, json_extract(value, '$[0]'), json_extract(value, '$[1]'), :record FROM json_each(:fields)";

export function insertFields(rows: TenantRows, record: number, fields: Fields): void {
  const sql = `INSERT OR IGNORE INTO record_field (tenant, field, value, record) ${GIVEN_FIELDS}`;
  rows.run(sql, { record, fields: JSON.stringify(fieldValues(fields)) });
}

export function deleteFields(rows: TenantRows, record: number, fields: Fields): void {
  const sql = `DELETE FROM record_field WHERE (tenant, field, value, record) IN (${GIVEN_FIELDS})`;
  rows.run(sql, { record, fields: JSON.stringify(fieldValues(fields)) });
}

export function bodyValues(record: MemoryRecord) {
  const { fields, title, text, sources, body } = record;
  return { fields: JSON.stringify(fields), title, text, sources: JSON.stringify(sources), body };
}

function fieldValues(fields: Fields): Array<readonly [number, string]> {
  return RECORD_FIELDS.flatMap((field) => {
    const value = fields[field] ?? [];
    return (typeof value === 'string' ? [value] : value).map((one) => [fieldCode(field), one] as const);
  });
}

/** A page ends at whichever limit is reached first. */
const PAGE_RECORDS = 500;
const PAGE_CHARS = 4_000_000;
type Reads<name extends 'load' | 'find' | 'count' | 'each'> = [StoreFile, ...Parameters<RecordStore[name]>];

export async function loadRecords(...[file, scope, layer, kind, keys]: Reads<'load'>): Promise<StoredRecord[]> {
  return file.read(seenBy(scope), (rows) => {
    const sql = `SELECT ${STORED_COLUMNS} FROM json_each(:keys) CROSS JOIN ${STORED_TABLES}
      WHERE record.tenant = :tenant AND kind = :kind AND record_key = json_each.value${rows.within}`;
    const found = rows.all<StoredRow>(sql, { kind: kindCode(layer, kind), keys: JSON.stringify(keys) });
    return found.map((row) => storedRecord(scope.tenant, layer, row));
  });
}

export async function findRecords(...[file, scope, layer, filter, page]: Reads<'find'>): Promise<StoredRecord[]> {
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

export async function countRecords(...[file, owners, layer, filter]: Reads<'count'>): Promise<number> {
  const { sql, values } = filterCondition(filter);
  return file.read(ownedBy(owners), (rows) => {
    const count = `SELECT count(*) AS n FROM record WHERE ${layerCondition(layer, filter)}${sql}${rows.within}`;
    return rows.all<{ n: number }>(count, values)[0]?.n ?? 0;
  });
}

/** Yields records by kind, then in key order. Each page is read in one transaction. */
export async function* eachRecord(...[file, owners, layer, filter]: Reads<'each'>): AsyncGenerator<readonly StoredRecord[]> {
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
