import type { MemoryLayer } from '@etude/contracts/task';
import type { TermCounts } from '@etude/domain/retrieval/bm25';
import { layerCode } from './record-codes.js';
import type { TenantRows } from './tenant-rows.js';
import { deleteWords, insertWords } from './words.js';

interface Size {
  worded: number;
  records: number;
  texts: number;
}

/**
 * What one transaction does last: the words of its records, all in a row, and the sizes of the layers.
 *
 * In a row, since FTS5 writes what it has gathered whenever another table is written in between: a segment per record instead of
 * one per transaction, and three times the time.
 */
export class LateChanges {
  readonly #sizes = new Map<MemoryLayer, Size>();
  readonly #words: Array<(rows: TenantRows) => void> = [];

  /** A record has so many searchable texts with these words now. */
  add(layer: MemoryLayer, record: number, texts: number, terms: TermCounts): void {
    this.#size(layer, terms.words, texts, 1);
    if (terms.words > 0) this.#words.push((rows) => insertWords(rows, layer, record, terms));
  }

  /** A record that had so many texts and words has them no more. */
  remove(layer: MemoryLayer, record: number, texts: number, words: number): void {
    this.#size(layer, words, texts, -1);
    if (words > 0) this.#words.push((rows) => deleteWords(rows, record));
  }

  store(rows: TenantRows): void {
    for (const change of this.#words) change(rows);
    for (const [layer, size] of this.#sizes) {
      rows.run(
        `INSERT INTO layer_size (tenant, layer, worded, records, texts) VALUES (:tenant, :layer, :worded, :records, :texts)
         ON CONFLICT DO UPDATE SET worded = worded + :worded, records = records + :records, texts = texts + :texts`,
        { layer: layerCode(layer), ...size },
      );
    }
  }

  #size(layer: MemoryLayer, words: number, texts: number, by: 1 | -1): void {
    if (texts === 0) return;
    const size = this.#sizes.get(layer) ?? { worded: 0, records: 0, texts: 0 };
    size.worded += words > 0 ? by : 0;
    size.records += by;
    size.texts += by * texts;
    this.#sizes.set(layer, size);
  }
}
