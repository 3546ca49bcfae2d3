import { COUNT_COLUMNS, createWords } from './store-schema.js';
import type { WholeFile } from './store-file.js';

/**
 * Whether word lists still have entries of removed rows. FTS5 only marks those as gone; merging all segments drops them.
 *
 * Looked for in the lists themselves, since FTS5 does not tell.
 */
export function wordsLeftBehind(file: WholeFile): boolean {
  const [structure] = file.all<{ segments: number }>('SELECT count(DISTINCT segid) AS segments FROM record_words_idx');
  return (structure?.segments ?? 0) > 1;
}

/** Writes all word lists anew from what they say themselves. Answers of how many records. */
export function rebuildWords(file: WholeFile): number {
  file.exec(createWords('record_words_new'));
  const columns = COUNT_COLUMNS.map((name) => `group_concat(term, ' ') FILTER (WHERE col = '${name}')`);
  const moved = file.run(
    `INSERT INTO record_words_new (rowid, ${COUNT_COLUMNS.join(', ')})
     SELECT doc, ${columns.join(', ')} FROM record_words_instance GROUP BY doc`,
  );
  for (const part of ['_instance', '_row', '']) file.exec(`DROP TABLE record_words${part}`);
  for (const part of ['_instance', '_row']) file.exec(`DROP TABLE record_words_new${part}`);
  file.exec('ALTER TABLE record_words_new RENAME TO record_words');
  for (const type of ['row', 'instance']) file.exec(`CREATE VIRTUAL TABLE record_words_${type} USING fts5vocab (record_words, ${type})`);
  return moved;
}
