import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/embedder';
import { type Change, type MemoryRecord, RECORD_TEXTS_MAX } from '../record-store.js';
import { indexedTextsOf } from './record-texts.js';
import { embedTexts } from './text-vectors.js';

/**
 * Inserts of new records in their order, with the texts that they are found by; embedded in one call.
 *
 * @throws EtudeError INVALID_ARGUMENT for a record of too many texts, before anything is embedded
 */
export async function insertsOf(embedder: Embedder, records: readonly MemoryRecord[]): Promise<readonly Change[]> {
  const texts = records.map(indexedTextsOf);
  texts.forEach(({ length }, i) => requireFew(length, records[i]?.key ?? ''));
  const indexed = await embedTexts(embedder, texts.flat());
  let next = 0;
  return records.map((record, i) => {
    const start = next;
    next += texts[i]?.length ?? 0;
    return { do: 'insert', record, indexed: indexed.slice(start, next) };
  });
}

function requireFew(texts: number, key: string): void {
  if (texts <= RECORD_TEXTS_MAX) return;
  throw new EtudeError('INVALID_ARGUMENT', `a record is found by ${RECORD_TEXTS_MAX} texts at most, and ${key} has ${texts}`);
}
