import { EtudeError } from '@etude/contracts/errors';
import type { Chunk, ParsedDocument } from './document.js';
import { packed, splitBlock, splitBlocks } from './split-text.js';

export interface ChunkOptions {
  /** Of a chunk's text; its headings are not counted. At least 100. */
  readonly charsMax?: number;
}

/** About 250 tokens: what a small sentence embedder reads before it cuts, headings included. */
export const CHUNK_CHARS_MAX = 1_200;
const CHARS_MIN = 100;

/**
 * Cuts a document where it is divided: at sections first, then between paragraphs, then between sentences.
 *
 * Code and tables stay whole where they fit. Every chunk carries the headings it stands under. Chunks do not overlap: their
 * headings say what they are about, and text that is stored twice is found twice. The same document gives the same chunks.
 * @throws EtudeError INVALID_ARGUMENT for a `charsMax` under 100
 */
export function chunkDocument(document: ParsedDocument, { charsMax = CHUNK_CHARS_MAX }: ChunkOptions = {}): Chunk[] {
  if (!Number.isSafeInteger(charsMax) || charsMax < CHARS_MIN) {
    throw new EtudeError('INVALID_ARGUMENT', `chunks of ${charsMax} characters cannot be made; at least ${CHARS_MIN} are needed`);
  }
  return document.sections
    .flatMap(({ headings, text, page }) => textsOf(text, headings, charsMax).map((piece) => ({ headings, text: piece, page })))
    .map((chunk, index) => ({ index, ...chunk }));
}

/** A section of a heading alone is found by its heading. */
function textsOf(text: string, headings: readonly string[], charsMax: number): string[] {
  const pieces = splitBlocks(text).flatMap((block) => splitBlock(block, charsMax));
  const filled = pieces.filter((piece) => piece.trim() !== '');
  return packed(filled.length > 0 ? filled : headings.slice(-1), '\n\n', charsMax);
}
