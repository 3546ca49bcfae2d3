import {
  type Fields,
  type MemoryRecord,
  RECORD_FIELDS,
  type RecordField,
  type RecordFilter,
  type RecordKind,
  type StoredRecord,
  type StoreQuery,
} from '../record-store.js';
import type { TenantRows, Value } from './tenant-rows.js';
import type { MemoryLayer } from '@etude/contracts/task';

/** Numbers in the file for what is a name in the code. Never reuse or change one. */
const LAYERS: Readonly<Record<MemoryLayer, number>> = { episodic: 1, semantic: 2, procedural: 3 };

const KINDS: Readonly<Record<MemoryLayer, Readonly<Partial<Record<RecordKind, number>>>>> = {
  episodic: { transition: 1, episode: 2, applied: 3 },
  semantic: { fact: 11, summary: 12, reflection: 13, document: 14, chunk: 15, applied: 16, erasure: 17 },
  procedural: { skill: 21, applied: 22 },
};

const FIELDS: Readonly<Record<RecordField, number>> = {
  id: 1,
  rollout: 2,
  name: 3,
  status: 4,
  digest: 5,
  fingerprint: 6,
  category: 7,
  skill: 8,
  document: 9,
  subject: 10,
};

const KIND_NAMES = new Map<number, RecordKind>(
  Object.values(KINDS).flatMap((kinds) => Object.entries(kinds).map(([name, code]) => [code, name as RecordKind] as const)),
);

export const layerCode = (layer: MemoryLayer): number => LAYERS[layer];
export const fieldCode = (field: RecordField): number => FIELDS[field];
export const kindName = (code: number): RecordKind => KIND_NAMES.get(code) ?? 'fact';

/** Of a kind that the layer does not have: a number that no record has. */
export function kindCode(layer: MemoryLayer, kind: RecordKind): number {
  return KINDS[layer][kind] ?? 0;
}

/** Those of the layer that a filter lets through. */
export function kindCodes(layer: MemoryLayer, kinds: RecordFilter['kinds']): readonly number[] {
  if (kinds === undefined) return Object.values(KINDS[layer]);
  return kinds.map((kind) => kindCode(layer, kind)).filter((code) => code > 0);
}

/** A part of a WHERE with what it binds. Starts with " AND". */
export interface Condition {
  readonly sql: string;
  readonly values: Readonly<Record<string, Value>>;
}

/** Kinds are our own numbers and stand in the statement itself, so that an index can be walked in the order of one. */
function kindCondition(layer: MemoryLayer, kinds: RecordFilter['kinds']): string {
  return ` AND record.kind IN (${kindCodes(layer, kinds).join(', ')})`;
}

/**
 * The tenant's records of a layer. Where fields are looked up, those few are gone through and not the tenant's index: the plus signs
 * keep SQLite from it, since it cannot know how few they are.
 */
export function layerCondition(layer: MemoryLayer, filter: RecordFilter): string {
  const off = looksUp(filter) ? '+' : '';
  return `${off}record.tenant = :tenant AND ${off}record.kind IN (${kindCodes(layer, filter.kinds).join(', ')})`;
}

export function looksUp({ where = {} }: RecordFilter): boolean {
  return Object.values(where).some((value) => value !== undefined);
}

/** All of a filter but its kinds, on columns of `record`. */
export function filterCondition(filter: RecordFilter): Condition {
  const values: Record<string, Value> = {};
  let sql = fieldsCondition(filter, values);
  if (filter.shown !== undefined) sql += ` AND record.shown = ${filter.shown ? 1 : 0}`;
  if (filter.createdSince !== undefined)
    sql += bind(values, ' AND record.created_at >= :createdSince', 'createdSince', filter.createdSince);
  if (filter.createdBefore !== undefined)
    sql += bind(values, ' AND record.created_at < :createdBefore', 'createdBefore', filter.createdBefore);
  if (filter.worthMin !== undefined) sql += bind(values, ' AND record.worth >= :worthMin', 'worthMin', filter.worthMin);
  return { sql, values };
}

/** What a search asks of a record: all of its filter, and whom it is for. */
export function searchCondition(rows: TenantRows, layer: MemoryLayer, query: StoreQuery): Condition {
  const { sql, values } = filterCondition({ ...query, shown: query.shown ?? true });
  const within = rows.within.replaceAll(' AND agent', ' AND record.agent').replaceAll(' AND user', ' AND record.user');
  return { sql: `${kindCondition(layer, query.kinds)}${sql}${within}`, values };
}

function bind(values: Record<string, Value>, sql: string, name: string, value: number): string {
  values[name] = value;
  return sql;
}

/** Those of which one value has few records come first. */
const FEWEST_FIRST = RECORD_FIELDS.toSorted((a, b) => placeOf(a) - placeOf(b));

function placeOf(field: RecordField): number {
  return field === 'status' ? 2 : field === 'category' ? 1 : 0;
}

/** The few records of the first field are gone through, and each is looked up in the others: a status may have every record. */
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

/** Of `record`, `record_body` and the names of its owners. `user` is null for none. */
export const STORED_COLUMNS = `record.kind AS kind, record_key AS key, created_at AS createdAt, worth, shown, revision, fields, title, text,
  sources, body, (SELECT name FROM principal WHERE principal.id = agent) AS agent, (SELECT name FROM principal WHERE principal.id = user) AS user`;

export const STORED_TABLES = 'record CROSS JOIN record_body ON record_body.id = record.id';
const FIELDS_AT_ONCE = 8;

/** By how many they are. */
const INSERT_FIELDS = Array.from({ length: FIELDS_AT_ONCE }, (_, last) => {
  const places = Array.from({ length: last + 1 }, (__, i) => `(:tenant, :field${i}, :value${i}, :record)`);
  return `INSERT OR IGNORE INTO record_field (tenant, field, value, record) VALUES ${places.join(', ')}`;
});

export interface StoredRow {
  readonly kind: number;
  readonly key: string;
  readonly createdAt: number;
  readonly worth: number;
  readonly shown: number;
  readonly revision: number;
  readonly fields: string;
  readonly title: string;
  readonly text: string;
  readonly sources: string;
  readonly body: string;
  readonly agent: string;
  readonly user: string | null;
}

export function storedRecord(tenant: string, layer: MemoryLayer, row: StoredRow): StoredRecord {
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

/** All of a record in one statement: most have two or three. */
export function insertFields(rows: TenantRows, record: number, fields: Fields): void {
  const values = fieldValues(fields);
  for (let from = 0; from < values.length; from += FIELDS_AT_ONCE) {
    const some = values.slice(from, from + FIELDS_AT_ONCE);
    const bound: Record<string, Value> = { record };
    some.forEach(([field, value], i) => {
      bound[`field${i}`] = field;
      bound[`value${i}`] = value;
    });
    rows.run(INSERT_FIELDS[some.length - 1] ?? '', bound);
  }
}

export function deleteFields(rows: TenantRows, record: number, fields: Fields): void {
  for (const [field, value] of fieldValues(fields)) {
    rows.run('DELETE FROM record_field WHERE tenant = :tenant AND field = :field AND value = :value AND record = :record', {
      field,
      value,
      record,
    });
  }
}

/** What of a record is in `record_body`. */
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
