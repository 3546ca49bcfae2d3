import type { MemoryLayer } from '@etude/contracts/task';
import type { RecordFilter, StoreQuery } from '../record-store.js';
import { RECORD_FIELDS, type RecordField } from '../record-store.js';
import { fieldCode, kindCodes } from './record-codes.js';
import type { TenantRows, Value } from './tenant-rows.js';

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
