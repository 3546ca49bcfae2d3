import type { Fields, Owners, RecordFilter } from '../record-store.js';
import { deleteFields, filterCondition, kindCodes, layerCondition } from './record-rows.js';
import { LateWords, removeTexts } from './record-writes.js';
import type { StoreFile } from './store-file.js';
import type { TenantRows, Values } from './tenant-rows.js';
import type { MemoryLayer } from '@etude/contracts/task';
import { setTimeout as sleep } from 'node:timers/promises';

/** Records per transaction. Small, so that others can write in between. */
const BATCH = 200;
/** The pause between transactions, in which this process renews its locks and others write. */
const PAUSE_MS = 5;

interface Doomed {
  readonly id: number;
  readonly texts: number;
  readonly words: number;
  readonly fields: string;
}

/** Removes records with everything that belongs to them. Returns their number. */
export async function removeRecords(file: StoreFile, owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
  if (kindCodes(layer, filter.kinds).length === 0) return 0;
  const { sql, values } = filterCondition(filter);
  const condition = `${layerCondition(layer, filter)}${sql}`;
  let removed = 0;
  for (;;) {
    const batch = await file.write(owners, (rows) => removeBatch(rows, layer, condition, values));
    removed += batch;
    if (batch < BATCH) break;
    await sleep(PAUSE_MS);
  }
  await file.write(owners, forgetNames);
  return removed;
}

function removeBatch(rows: TenantRows, layer: MemoryLayer, condition: string, values: Values): number {
  const doomed = rows.all<Doomed>(
    `SELECT record.id AS id, texts, words, fields FROM record CROSS JOIN record_body ON record_body.id = record.id
     WHERE ${condition}${rows.within} LIMIT ${BATCH}`,
    values,
  );
  const late = new LateWords();
  for (const record of doomed) {
    removeTexts(rows, layer, record, late);
    deleteFields(rows, record.id, JSON.parse(record.fields) as Fields);
    rows.run('DELETE FROM record_body WHERE tenant = :tenant AND id = :id', { id: record.id });
    rows.run('DELETE FROM record WHERE tenant = :tenant AND id = :id', { id: record.id });
  }
  late.store(rows);
  return doomed.length;
}

/** Deletes the names of agents, users and the tenant if they have no records left. */
function forgetNames(rows: TenantRows): void {
  rows.run(
    `DELETE FROM principal WHERE tenant = :tenant AND id NOT IN (SELECT agent FROM record WHERE tenant = :tenant
       UNION SELECT user FROM record WHERE tenant = :tenant)`,
  );
  rows.run('DELETE FROM layer_size WHERE tenant = :tenant AND records = 0');
  rows.run('DELETE FROM tenant WHERE id = :tenant AND NOT EXISTS (SELECT 1 FROM record WHERE tenant = :tenant)');
}
