import type { MemoryLayer } from '@etude/contracts/task';
import { layerCode } from './record-codes.js';
import type { TenantRows } from './tenant-rows.js';

interface Size {
  worded: number;
  records: number;
  texts: number;
}

/** What one transaction changes in the sizes of a tenant's layers, stored once at its end. */
export class SizeChanges {
  readonly #changes = new Map<MemoryLayer, Size>();

  /** A record with so many words and searchable texts. */
  add(layer: MemoryLayer, words: number, texts: number): void {
    this.#change(layer, words, texts, 1);
  }

  remove(layer: MemoryLayer, words: number, texts: number): void {
    this.#change(layer, words, texts, -1);
  }

  store(rows: TenantRows): void {
    for (const [layer, size] of this.#changes) {
      rows.run(
        `INSERT INTO layer_size (tenant, layer, worded, records, texts) VALUES (:tenant, :layer, :worded, :records, :texts)
         ON CONFLICT DO UPDATE SET worded = worded + :worded, records = records + :records, texts = texts + :texts`,
        { layer: layerCode(layer), ...size },
      );
    }
  }

  #change(layer: MemoryLayer, words: number, texts: number, by: 1 | -1): void {
    if (texts === 0) return;
    const size = this.#changes.get(layer) ?? { worded: 0, records: 0, texts: 0 };
    size.worded += words > 0 ? by : 0;
    size.records += by;
    size.texts += by * texts;
    this.#changes.set(layer, size);
  }
}
