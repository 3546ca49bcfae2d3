import { EtudeError } from '@etude/contracts/errors';
import type { ParsedDocument, Section } from './document.js';

/** About 250 tokens. A small sentence embedder reads at most that much, headings included. */
const CHUNK_CHARS_MAX = 1_200;
/** Maximum number of chunks of one document: about 20 million characters of prose. Each chunk is embedded and stored separately. */
const CHUNKS_MAX = 20_000;

interface Chunk extends Section {
  /** Counted from 0, in the order of the document. */
  readonly index: number;
}

/**
 * Cuts a document into chunks of at most `charsMax` characters, headings not counted. It cuts at sections first, then between
 * paragraphs, then between sentences. Code and tables stay whole if they fit. The same document gives the same chunks.
 *
 * Each chunk carries the headings above it. Chunks don't overlap, because a search would find repeated text twice.
 * @throws EtudeError PAYLOAD_TOO_LARGE for more than `CHUNKS_MAX` chunks
 */
export function chunkDocument(document: ParsedDocument, { charsMax = CHUNK_CHARS_MAX }: { readonly charsMax?: number } = {}): Chunk[] {
  const chunks = document.sections
    // A heading without text is found by its own words.
    .map((section) => ({ ...section, text: section.text || (section.headings.at(-1) ?? '') }))
    .flatMap(({ headings, text, page }) => textsOf(text, charsMax).map((piece) => ({ headings, text: piece, page })))
    .map((chunk, index) => ({ index, ...chunk }));
  if (chunks.length <= CHUNKS_MAX) return chunks;
  const message = `${JSON.stringify(document.title)} would be ${chunks.length} chunks; at most ${CHUNKS_MAX} are allowed; split it into several files`;
  throw new EtudeError('PAYLOAD_TOO_LARGE', message);
}

function textsOf(text: string, charsMax: number): string[] {
  const pieces = splitBlocks(text).flatMap((block) => splitBlock(block, charsMax));
  return packed(
    pieces.filter((piece) => piece.trim() !== ''),
    '\n\n',
    charsMax,
  );
}

/** The end of a sentence. A match after an abbreviation only moves a cut. */
const SENTENCE_END = /[.!?…]["'”’»)\]]*\s+|[。！？]["'”’」』]*\s*|\n/gu;

/** A block of a section's text: a paragraph, a list, a table, or code with its fences. */
interface TextBlock {
  readonly text: string;
  /** The opening line of the code's fence; null for everything but code. */
  readonly fence: string | null;
}

/** Splits a text at empty lines, but not at empty lines within code. */
function splitBlocks(text: string): TextBlock[] {
  const blocks: TextBlock[] = [];
  let lines: string[] = [];
  let fence: { readonly ticks: string; readonly line: string } | null = null;
  const flush = () => {
    if (lines.length > 0) blocks.push({ text: lines.join('\n'), fence: fence?.line ?? null });
    lines = [];
    fence = null;
  };
  for (const line of text.split('\n')) {
    const ticks = /^`{3,}/.exec(line)?.[0];
    if (fence) {
      lines.push(line);
      if (line === fence.ticks) flush();
    } else if (ticks) {
      flush();
      fence = { ticks, line };
      lines.push(line);
    } else if (line.trim() === '') flush();
    else lines.push(line);
  }
  flush();
  return blocks;
}

/** Splits code and tables between lines, and prose between sentences. Each piece repeats the fences or the table head. */
function splitBlock(block: TextBlock, charsMax: number): string[] {
  if (block.text.length <= charsMax) return [block.text];
  const [head = '', ...lines] = block.text.split('\n');
  if (block.fence !== null) {
    const ticks = /^`+/.exec(block.fence)?.[0] ?? '```';
    if (lines.at(-1) === ticks) lines.pop();
    return splitLines(lines, [head], [ticks], charsMax);
  }
  if (lines.length > 1 && lines.filter((line) => line.includes(' | ')).length > lines.length / 2)
    return splitLines(lines, [head], [], charsMax);
  return packed(sentencesOf(block.text), '', charsMax).map((piece) => piece.trim());
}

/** Splits between lines and repeats head and foot in each piece, unless they would fill half of it. */
function splitLines(lines: readonly string[], head: readonly string[], foot: readonly string[], charsMax: number): string[] {
  const room = charsMax - [...head, ...foot].join('\n').length - head.length - foot.length;
  if (room < charsMax / 2) return packed([...head, ...lines, ...foot], '\n', charsMax);
  return packed(lines, '\n', room).map((piece) => [...head, piece, ...foot].join('\n'));
}

function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let start = 0;
  for (const match of text.matchAll(SENTENCE_END)) {
    sentences.push(text.slice(start, match.index + match[0].length));
    start = match.index + match[0].length;
  }
  if (start < text.length) sentences.push(text.slice(start));
  return sentences;
}

/** Joins as many parts as fit into each piece. A part that is too long is cut at spaces, or anywhere if it has no spaces. */
function packed(parts: readonly string[], separator: string, charsMax: number): string[] {
  const pieces: string[] = [];
  let piece: string | null = null;
  for (const part of parts.flatMap((whole) => (whole.length > charsMax ? cutAtSpaces(whole, charsMax) : [whole]))) {
    if (piece !== null && piece.length + separator.length + part.length <= charsMax) piece += separator + part;
    else {
      if (piece !== null) pieces.push(piece);
      piece = part;
    }
  }
  if (piece !== null) pieces.push(piece);
  return pieces;
}

function cutAtSpaces(text: string, charsMax: number): string[] {
  const pieces: string[] = [];
  let start = 0;
  while (text.length - start > charsMax) {
    const space = text.slice(start, start + charsMax).lastIndexOf(' ');
    let end = start + (space > charsMax / 2 ? space + 1 : charsMax);
    // Don't cut a surrogate pair in two.
    if (/[\uD800-\uDBFF]/.test(text[end - 1] ?? '')) end -= 1;
    pieces.push(text.slice(start, end));
    start = end;
  }
  pieces.push(text.slice(start));
  return pieces;
}
