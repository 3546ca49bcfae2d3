import type { Embedder } from '@etude/domain/ports/embedder';
import type { Change, MemoryRecord } from '../record-store.js';
import { indexedTextsOf } from './record-texts.js';
import { embedTexts } from './text-vectors.js';

/** Inserts of new records in their order, with the texts that they are found by; embedded in one call. */
export async function insertsOf(embedder: Embedder, records: readonly MemoryRecord[]): Promise<readonly Change[]> {
  const texts = records.map(indexedTextsOf);
  const indexed = await embedTexts(embedder, texts.flat());
  let next = 0;
  return records.map((record, i) => {
    const start = next;
    next += texts[i]?.length ?? 0;
    return { do: 'insert', record, indexed: indexed.slice(start, next) };
  });
}
