import type { MemoryLayer } from '@etude/contracts/task';
import type { Fields, MemoryRecord, StoredRecord } from '../record-store.js';
import { RECORD_FIELDS } from '../record-store.js';
import { fieldCode, kindName } from './record-codes.js';
import type { TenantRows, Value } from './tenant-rows.js';

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
