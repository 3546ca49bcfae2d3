import { EtudeError } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import type { Fields, Owners, RecordFilter } from '../record-store.js';
import { LateChanges } from './late-changes.js';
import { kindCodes } from './record-codes.js';
import { filterCondition, layerCondition } from './record-conditions.js';
import { deleteFields } from './record-rows.js';
import { removeTexts } from './record-writes.js';
import type { StoreFile } from './store-file.js';
import type { TenantRows, Values } from './tenant-rows.js';

/** Of one transaction, so that others can write in between. */
const BATCH = 500;

interface Doomed {
  readonly id: number;
  readonly texts: number;
  readonly words: number;
  readonly fields: string;
}

/** Removes records with all that belongs to them, and what SQLite keeps of what was deleted. */
export class RecordRemoval {
  readonly #file: StoreFile;

  constructor(file: StoreFile) {
    this.#file = file;
  }

  async remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
    if (kindCodes(layer, filter.kinds).length === 0) return 0;
    const { sql, values } = filterCondition(filter);
    const condition = `${layerCondition(layer, filter)}${sql}`;
    let removed = 0;
    for (;;) {
      const batch = await this.#file.writeOwned(owners, (rows) => removeBatch(rows, layer, condition, values));
      removed += batch;
      if (batch < BATCH) break;
    }
    await this.#file.writeOwned(owners, forgetNames);
    return removed;
  }

  /** @throws EtudeError MEMORY_UNAVAILABLE where another process holds on to old pages for longer than the wait for locks */
  async purge(): Promise<readonly string[]> {
    await this.#file.writeWhole((file) => {
      // FTS5 only marks removed rows as gone, until it merges.
      file.run("INSERT INTO record_words (record_words) VALUES ('optimize')");
    });
    await this.#file.outside((file) => {
      // Its copy of what is left may be large; that of what was removed is not in it.
      file.exec('PRAGMA temp_store = FILE');
      try {
        file.exec('VACUUM');
      } finally {
        file.exec('PRAGMA temp_store = MEMORY');
      }
    });
    await this.#emptyLog();
    return [
      'merged the word lists into one without what was removed',
      'wrote the file anew without free pages; freed bytes were overwritten with zeros before',
      'emptied the write-ahead log',
    ];
  }

  async #emptyLog(): Promise<void> {
    const done = await this.#file.outside((file) => {
      const [row] = file.all<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)');
      return row?.busy === 0 ? 'emptied' : 'locked';
    });
    if (done === 'emptied') return;
    throw new EtudeError(
      'MEMORY_UNAVAILABLE',
      `another process keeps reading an old state of the memory file ${this.#file.path}, so its write-ahead log still has what was removed; ` +
        'repeat this when that process has finished or was stopped',
    );
  }
}

function removeBatch(rows: TenantRows, layer: MemoryLayer, condition: string, values: Values): number {
  const doomed = rows.all<Doomed>(
    `SELECT record.id AS id, texts, words, fields FROM record CROSS JOIN record_body ON record_body.id = record.id
     WHERE ${condition}${rows.within} LIMIT ${BATCH}`,
    values,
  );
  const late = new LateChanges();
  for (const record of doomed) {
    removeTexts(rows, layer, record, late);
    deleteFields(rows, record.id, JSON.parse(record.fields) as Fields);
    rows.run('DELETE FROM record_body WHERE tenant = :tenant AND id = :id', { id: record.id });
    rows.run('DELETE FROM record WHERE tenant = :tenant AND id = :id', { id: record.id });
  }
  late.store(rows);
  return doomed.length;
}

/** Names of agents and users, and of the tenant, that have nothing any more. */
function forgetNames(rows: TenantRows): void {
  rows.run(
    `DELETE FROM principal WHERE tenant = :tenant AND id NOT IN (SELECT agent FROM record WHERE tenant = :tenant
       UNION SELECT user FROM record WHERE tenant = :tenant)`,
  );
  rows.run('DELETE FROM layer_size WHERE tenant = :tenant AND records = 0');
  rows.run('DELETE FROM tenant WHERE id = :tenant AND NOT EXISTS (SELECT 1 FROM record WHERE tenant = :tenant)');
}
