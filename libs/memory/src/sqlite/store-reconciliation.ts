import type { StoreReport } from '../record-store.js';
import type { StoreFile, WholeFile } from './store-file.js';
import { vectorTable } from './store-schema.js';

/**
 * Looks for damage, and for records without vectors.
 *
 * Every write is one transaction, so nothing is half-written; what another program or a broken disk has damaged is reported, not mended.
 */
export async function reconcileFile(file: StoreFile): Promise<StoreReport> {
  return file.writeWhole((whole) => {
    const problems = [...damage(whole)];
    let vectors = 0;
    for (const { id, name, ready } of whole.all<{ id: number; name: string; ready: number }>('SELECT id, name, ready FROM model')) {
      vectors += countOf(whole, `SELECT count(*) AS n FROM ${vectorTable(id)}`);
      const without = countOf(
        whole,
        'SELECT count(*) AS n FROM record WHERE texts > 0 AND NOT EXISTS (SELECT 1 FROM embedding WHERE model = ? AND record = record.id)',
        BigInt(id),
      );
      if (without > 0 && ready === 1)
        problems.push(`${without} records have no vectors of ${name}; run "etude memory reembed" to make them`);
    }
    const records = countOf(whole, 'SELECT count(*) AS n FROM record');
    const texts = countOf(whole, 'SELECT coalesce(sum(texts), 0) AS n FROM record');
    return { checked: { records, texts, vectors }, repaired: [], problems };
  });
}

function* damage(file: WholeFile): Generator<string> {
  // A connection looks at its own idea of the word lists, which others may have merged since, until it has read from them once more.
  file.all("SELECT rowid FROM record_words WHERE record_words MATCH 'c1:x' LIMIT 1");
  const results = file.all<{ quick_check: string }>('PRAGMA quick_check(20)').map((row) => row.quick_check);
  if (results[0] !== 'ok') yield `the file is damaged, restore it from a backup: ${results.join('; ')}`;
  const lost = countOf(file, 'SELECT count(*) AS n FROM record WHERE id NOT IN (SELECT id FROM record_body)');
  if (lost > 0) yield `${lost} records have lost their text; restore the file from a backup`;
  try {
    file.exec("INSERT INTO record_words (record_words) VALUES ('integrity-check')");
  } catch (cause) {
    yield `the word lists are damaged, export the memory and import it into a new file: ${(cause as Error).message}`;
  }
}

function countOf(file: WholeFile, sql: string, ...values: readonly bigint[]): number {
  return file.all<{ n: number }>(sql, ...values)[0]?.n ?? 0;
}
