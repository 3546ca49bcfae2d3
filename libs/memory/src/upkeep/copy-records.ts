import { insertsOf } from '../layers/indexed-texts.js';
import { LAYERS, RECORD_KINDS, type RecordStore } from '../record-store.js';
import type { Embedder } from '@etude/domain/ports/embedder';

/** A few records, since their texts are embedded at once. */
const BATCH = 128;

/**
 * Copies every record of every tenant into a store that no service uses, with notes of applied writes and marks of erasures. Texts are
 * embedded anew, so both stores may have different models. A repeat adds what is missing.
 *
 * Notes of applied writes come first. A copied note's record was stored before the note, so it is copied too, although services write
 * meanwhile.
 * @param onCopied gets the number of records so far
 */
export async function copyRecords(
  from: RecordStore,
  to: RecordStore,
  embedder: Embedder,
  onCopied: (records: number) => void,
): Promise<number> {
  let copied = 0;
  for (const notesOnly of [true, false])
    for (const tenant of await from.tenants())
      for (const layer of LAYERS) {
        const kinds = RECORD_KINDS[layer].filter((kind) => (kind === 'applied') === notesOnly);
        for await (const page of from.each({ tenant }, layer, { kinds }))
          for (let start = 0; start < page.length; start += BATCH) {
            const records = page.slice(start, start + BATCH).map(({ revision: _revision, ...record }) => record);
            await to.write(tenant, await insertsOf(embedder, records));
            copied += records.length;
            onCopied(copied);
          }
      }
  return copied;
}
