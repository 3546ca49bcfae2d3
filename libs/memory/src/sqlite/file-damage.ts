import type { StoreFile, WholeFile } from './store-file.js';

/** Looks for damage by disks and other programs. Our own writes are transactions, so none is left half done. */
export async function fileDamage(file: StoreFile): Promise<readonly string[]> {
  return file.writeWhole((whole) => [...damageIn(whole)]);
}

function* damageIn(file: WholeFile): Generator<string> {
  // A connection checks a cached state of the word lists, which others may have merged since. Reading from them refreshes it.
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
