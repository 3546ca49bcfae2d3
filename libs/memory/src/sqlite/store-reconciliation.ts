import type { StoreReport } from '../record-store.js';
import type { StoreFile, WholeFile } from './store-file.js';

/**
 * Looks for damage, and for records without vectors.
 *
 * Every write is one transaction, so nothing is half-written; what another program or a broken disk has damaged is reported, not mended.
 */
export async function reconcileFile(file: StoreFile): Promise<StoreReport> {
  return file.writeWhole((whole) => {
    const problems = [...damage(whole)];
    const without = `SELECT model.name AS name, count(*) AS n FROM record CROSS JOIN model WHERE texts > 0 AND ready = 1
      AND NOT EXISTS (SELECT 1 FROM embedding WHERE model = model.id AND record = record.id) GROUP BY model.id`;
    for (const { name, n } of whole.all<{ name: string; n: number }>(without))
      problems.push(`${n} records have no vectors of ${name}; run "etude memory reembed" to make them`);
    const [checked = {}] = whole.all<Record<string, number>>('SELECT count(*) AS records, coalesce(sum(texts), 0) AS texts FROM record');
    return { checked: { ...checked }, repaired: [], problems };
  });
}

function* damage(file: WholeFile): Generator<string> {
  // A connection looks at its own idea of the word lists, which others may have merged since, until it has read from them once more.
  file.all("SELECT rowid FROM record_words WHERE record_words MATCH 'c1:x' LIMIT 1");
  const results = file.all<{ quick_check: string }>('PRAGMA quick_check(20)').map((row) => row.quick_check);
  if (results[0] !== 'ok') yield `the file is damaged, restore it from a backup: ${results.join('; ')}`;
  const [{ n: lost } = { n: 0 }] = file.all<{ n: number }>('SELECT count(*) AS n FROM record WHERE id NOT IN (SELECT id FROM record_body)');
  if (lost > 0) yield `${lost} records have lost their text; restore the file from a backup`;
  try {
    file.exec("INSERT INTO record_words (record_words) VALUES ('integrity-check')");
  } catch (cause) {
    yield `the word lists are damaged, export the memory and import it into a new file: ${(cause as Error).message}`;
  }
}
