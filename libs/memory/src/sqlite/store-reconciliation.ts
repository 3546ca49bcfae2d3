import type { StoreReport } from '../record-store.js';
import type { StoreFile, WholeFile } from './store-file.js';
import { codeTable, TEXTS_MAX, vectorTable } from './store-schema.js';

const SENTENCES_MAX = 100;

interface Findings {
  readonly checked: Record<string, number>;
  readonly repaired: string[];
  readonly problems: string[];
}

/**
 * Looks for parts without their record and records without their parts.
 *
 * Every write is one transaction, so there are none unless the file was damaged or written by something else.
 */
export async function reconcileFile(file: StoreFile): Promise<StoreReport> {
  const found: Findings = { checked: {}, repaired: [], problems: [] };
  await file.writeWhole((whole) => {
    checkFile(whole, found);
    found.checked.records = countOf(whole, 'SELECT count(*) AS n FROM record');
    found.checked.texts = countOf(whole, 'SELECT coalesce(sum(texts), 0) AS n FROM record');
    removeOrphans(whole, found);
    checkBodies(whole, found);
    checkWords(whole, found);
    checkVectors(whole, found);
    checkSizes(whole, found);
  });
  return { checked: found.checked, repaired: found.repaired.slice(0, SENTENCES_MAX), problems: found.problems };
}

function checkFile(file: WholeFile, { problems }: Findings): void {
  // A connection looks at its own idea of the word lists, which others may have merged since, until it has read from them once more.
  file.all("SELECT rowid FROM record_words WHERE record_words MATCH 'c1:x' LIMIT 1");
  const results = file.all<{ quick_check: string }>('PRAGMA quick_check(20)').map((row) => row.quick_check);
  if (results[0] !== 'ok') problems.push(`the file is damaged, restore it from a backup: ${results.join('; ')}`);
}

/** Rows under the number of a record that is not there. */
function removeOrphans(file: WholeFile, { checked, repaired }: Findings): void {
  const places = [
    { table: 'record_body', record: 'id', what: 'texts' },
    { table: 'record_field', record: 'record', what: 'look-up values' },
    { table: 'embedding', record: 'record', what: 'notes on vectors' },
  ];
  let parts = 0;
  for (const { table, record, what } of places) {
    parts += countOf(file, `SELECT count(*) AS n FROM ${table}`);
    const gone = file.run(`DELETE FROM ${table} WHERE ${record} NOT IN (SELECT id FROM record)`);
    if (gone > 0) repaired.push(`removed ${gone} ${what} of records that are not there`);
  }
  checked.parts = parts;
}

function checkBodies(file: WholeFile, { problems }: Findings): void {
  for (const { key } of file.all<{ key: string }>(
    `SELECT record_key AS key FROM record WHERE id NOT IN (SELECT id FROM record_body) LIMIT ${SENTENCES_MAX}`,
  )) {
    problems.push(`the record ${JSON.stringify(key)} has lost its text; restore the file from a backup, or remove the record`);
  }
}

function checkWords(file: WholeFile, { checked, repaired, problems }: Findings): void {
  checked.words = countOf(file, 'SELECT count(*) AS n FROM record_words_docsize');
  const strays = file.all<{ id: number }>('SELECT id FROM record_words_docsize WHERE id NOT IN (SELECT id FROM record WHERE words > 0)');
  for (const { id } of strays) file.run('DELETE FROM record_words WHERE rowid = ?', BigInt(id));
  if (strays.length > 0) repaired.push(`removed the words of ${strays.length} records that are not there or have none`);
  const missing = file.all<{ key: string }>(
    `SELECT record_key AS key FROM record WHERE words > 0 AND id NOT IN (SELECT id FROM record_words_docsize) LIMIT ${SENTENCES_MAX}`,
  );
  for (const { key } of missing) problems.push(`the record ${JSON.stringify(key)} is not found by its words; store it again`);
  try {
    file.exec("INSERT INTO record_words (record_words) VALUES ('integrity-check')");
  } catch (cause) {
    problems.push(`the word lists are damaged, export the memory and import it into a new file: ${(cause as Error).message}`);
  }
}

function checkVectors(file: WholeFile, found: Findings): void {
  const { checked, repaired, problems } = found;
  checked.vectors = 0;
  for (const model of file.all<{ id: number; name: string; ready: number }>('SELECT id, name, ready FROM model')) {
    const [vectors, codes] = [vectorTable(model.id), codeTable(model.id)];
    file.exec(`DROP TABLE IF EXISTS temp.seen_vector; DROP TABLE IF EXISTS temp.seen_code;
      CREATE TEMP TABLE seen_code AS SELECT id FROM ${codes}; CREATE INDEX temp.code_by_id ON seen_code (id);
      CREATE TEMP TABLE seen_vector AS SELECT id, id / ${TEXTS_MAX} AS record FROM ${vectors} WHERE id IN (SELECT id FROM temp.seen_code);
      CREATE INDEX temp.seen_by_record ON seen_vector (record)`);
    checked.vectors += countOf(file, 'SELECT count(*) AS n FROM temp.seen_vector');
    const lost = file.run(
      `DELETE FROM embedding WHERE model = ? AND vectors > (SELECT count(*) FROM temp.seen_vector AS seen WHERE seen.record = embedding.record)`,
      BigInt(model.id),
    );
    if (lost > 0) repaired.push(`noted that ${lost} records have lost vectors of ${model.name}; "etude memory reembed" makes them anew`);
    const strays = file.all<{ id: number }>(
      `SELECT id FROM ${vectors} UNION SELECT id FROM temp.seen_code
       EXCEPT SELECT id FROM temp.seen_vector WHERE record IN (SELECT record FROM embedding WHERE model = ?)`,
      BigInt(model.id),
    );
    for (const { id } of strays) {
      for (const table of [codes, vectors]) file.run(`DELETE FROM ${table} WHERE id = ?`, BigInt(id));
    }
    if (strays.length > 0) repaired.push(`removed ${strays.length} vectors of ${model.name} without a whole record`);
    const without = countOf(
      file,
      'SELECT count(*) AS n FROM record WHERE texts > 0 AND NOT EXISTS (SELECT 1 FROM embedding WHERE model = ? AND record = record.id)',
      BigInt(model.id),
    );
    if (without > 0 && model.ready === 1) {
      problems.push(`${without} records have no vectors of ${model.name}; run "etude memory reembed" to make them`);
    }
  }
  file.exec('DROP TABLE IF EXISTS temp.seen_vector; DROP TABLE IF EXISTS temp.seen_code');
}

/** What BM25 counts with. */
function checkSizes(file: WholeFile, { repaired }: Findings): void {
  const counted = `SELECT tenant, kind / 10 + 1 AS layer, sum(words > 0) AS worded, count(*) AS records, sum(texts) AS texts
    FROM record WHERE texts > 0 GROUP BY tenant, kind / 10`;
  const stored = 'SELECT tenant, layer, worded, records, texts FROM layer_size WHERE records <> 0';
  const wrong = countOf(
    file,
    `SELECT count(*) AS n FROM (SELECT * FROM (${counted} EXCEPT ${stored}) UNION ALL SELECT * FROM (${stored} EXCEPT ${counted}))`,
  );
  if (wrong === 0) return;
  file.run('DELETE FROM layer_size');
  file.run(`INSERT INTO layer_size (tenant, layer, worded, records, texts) ${counted}`);
  repaired.push('counted the records of every layer anew');
}

function countOf(file: WholeFile, sql: string, ...values: readonly bigint[]): number {
  return file.all<{ n: number }>(sql, ...values)[0]?.n ?? 0;
}
