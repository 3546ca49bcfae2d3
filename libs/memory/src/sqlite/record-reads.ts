import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { Owners, RecordFilter, RecordKind, StoredRecord } from '../record-store.js';
import { kindCode, kindCodes } from './record-codes.js';
import { filterCondition, layerCondition, looksUp } from './record-conditions.js';
import type { StoredRow } from './record-rows.js';
import { STORED_COLUMNS, STORED_TABLES, storedRecord } from './record-rows.js';
import type { StoreFile } from './store-file.js';
import type { TenantRows, Values } from './tenant-rows.js';

/** A page is full at either. */
const PAGE_RECORDS = 500;
const PAGE_CHARS = 4_000_000;

/** Reads whole records. */
export class RecordReads {
  readonly #file: StoreFile;

  constructor(file: StoreFile) {
    this.#file = file;
  }

  async load(scope: ReadScope, layer: MemoryLayer, kind: RecordKind, keys: readonly string[]): Promise<StoredRecord[]> {
    return this.#file.read(scope, (rows) => {
      const sql = `SELECT ${STORED_COLUMNS} FROM ${STORED_TABLES}
        WHERE record.tenant = :tenant AND kind = :kind AND record_key = :key${rows.within}`;
      return keys.flatMap((key) => {
        const row = rows.all<StoredRow>(sql, { kind: kindCode(layer, kind), key })[0];
        return row === undefined ? [] : [storedRecord(scope.tenant, layer, row)];
      });
    });
  }

  async find(
    scope: ReadScope,
    layer: MemoryLayer,
    filter: RecordFilter,
    { order, limit, afterKey }: { readonly order: 'newest' | 'key'; readonly limit: number; readonly afterKey?: string },
  ): Promise<StoredRecord[]> {
    const { sql, values } = filterCondition(filter);
    const after: Values = order === 'key' && afterKey !== undefined ? { afterKey } : {};
    const behind = 'afterKey' in after ? ' AND record_key > :afterKey' : '';
    const by = order === 'key' ? 'record_key' : 'created_at DESC, record_key DESC';
    return this.#file.read(scope, (rows) =>
      rows
        .all<StoredRow>(
          `SELECT ${STORED_COLUMNS} FROM ${STORED_TABLES}
           WHERE ${layerCondition(layer, filter)}${sql}${behind}${rows.within} ORDER BY ${by} LIMIT :limit`,
          { ...values, ...after, limit: Math.max(0, limit) },
        )
        .map((row) => storedRecord(scope.tenant, layer, row)),
    );
  }

  async count(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
    const { sql, values } = filterCondition(filter);
    return this.#file.readOwned(owners, (rows) => {
      const count = `SELECT count(*) AS n FROM record WHERE ${layerCondition(layer, filter)}${sql}${rows.within}`;
      return rows.all<{ n: number }>(count, values)[0]?.n ?? 0;
    });
  }

  /** In the order of the keys within each kind, a page per transaction. */
  async *each(
    owners: Owners,
    layer: MemoryLayer,
    filter: RecordFilter,
    extra = '',
    more: Values = {},
  ): AsyncGenerator<readonly StoredRecord[]> {
    const { sql, values } = filterCondition(filter);
    for (const kind of kindCodes(layer, filter.kinds)) {
      for (let after = ''; ;) {
        const page = await this.#file.readOwned(owners, (rows) =>
          pageOf(rows, looksUp(filter) ? '+' : '', `${sql}${extra}`, { ...values, ...more, kind, after }),
        );
        const last = page.at(-1);
        if (last === undefined) break;
        yield page.map((row) => storedRecord(owners.tenant, layer, row));
        after = last.key;
        // Reading is synchronous: what else this process does has its turn between two pages.
        await nextTurn();
      }
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
