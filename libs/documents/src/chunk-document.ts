import { EtudeError } from '@etude/contracts/errors';
import type { Chunk, ParsedDocument, Section } from './document.js';
import { packed, splitBlock, splitBlocks } from './split-text.js';

export interface ChunkOptions {
  /** Of a chunk's text; its headings are not counted. At least 100. */
  readonly charsMax?: number;
}

/** About 250 tokens: what a small sentence embedder reads before it cuts, headings included. */
export const CHUNK_CHARS_MAX = 1_200;
const CHARS_MIN = 100;
/** Of one document. As many make some 20 million characters of prose; each is embedded and kept for itself. */
export const CHUNKS_MAX = 20_000;

/**
 * Cuts a document where it is divided: at sections first, then between paragraphs, then between sentences.
 *
 * Code and tables stay whole where they fit. Every chunk carries the headings it stands under; a heading with nothing under it is
 * a line of the section before. Chunks do not overlap: their headings say what they are about, and text that is stored twice is
 * found twice. The same document gives the same chunks.
 * @throws EtudeError INVALID_ARGUMENT for a `charsMax` under 100, PAYLOAD_TOO_LARGE for more than `CHUNKS_MAX` chunks
 */
export function chunkDocument(document: ParsedDocument, { charsMax = CHUNK_CHARS_MAX }: ChunkOptions = {}): Chunk[] {
  if (!Number.isSafeInteger(charsMax) || charsMax < CHARS_MIN) {
    throw new EtudeError('INVALID_ARGUMENT', `chunks of ${charsMax} characters cannot be made; at least ${CHARS_MIN} are needed`);
  }
  const chunks = filledSections(document.sections)
    .flatMap(({ headings, text, page }) => textsOf(text, charsMax).map((piece) => ({ headings, text: piece, page })))
    .map((chunk, index) => ({ index, ...chunk }));
  if (chunks.length <= CHUNKS_MAX) return chunks;
  throw new EtudeError(
    'PAYLOAD_TOO_LARGE',
    `${JSON.stringify(document.title)} would be ${chunks.length} chunks, and a document may have ${CHUNKS_MAX}; split it into several files`,
  );
}

interface FilledSection extends Section {
  /** Headings with nothing under them that come behind its text. */
  readonly bare: string[];
}

/** Sections with text in them. Headings at the beginning that have none are one of their own, under what they stand under. */
function filledSections(sections: readonly Section[]): Section[] {
  const filled: FilledSection[] = [];
  for (const section of sections) {
    const [heading] = section.headings.slice(-1);
    const last = filled.at(-1);
    if (section.text.trim() !== '') filled.push({ ...section, bare: [] });
    else if (heading !== undefined && last !== undefined) last.bare.push(heading);
    else if (heading !== undefined) filled.push({ ...section, text: heading, bare: [] });
  }
  return filled.map(({ bare, text, ...section }) => ({ ...section, text: bare.length === 0 ? text : `${text}\n\n${bare.join('\n')}` }));
}

function textsOf(text: string, charsMax: number): string[] {
  const pieces = splitBlocks(text).flatMap((block) => splitBlock(block, charsMax));
  return packed(
    pieces.filter((piece) => piece.trim() !== ''),
    '\n\n',
    charsMax,
  );
}
