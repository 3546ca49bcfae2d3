import { errorCode } from '@etude/contracts/errors';
import { micromark } from 'micromark';
import { gfmTable, gfmTableHtml } from 'micromark-extension-gfm-table';
import type { MediaType, ParsedDocument } from './document.js';
import { cleanText, MEDIA_TYPES, PARSE_LIMITS, SectionBuilder, tooLarge, unreadable } from './document.js';
import { addHtml, parseHtml } from './parse-html.js';
import { parsePdf } from './pdf/parse-pdf.js';

const OF_TEXT = { 'text/markdown': parseMarkdown, 'text/plain': parseText, 'text/html': parseHtml } as const;

/**
 * Parses a document in this process, with no limit of time or memory. Use `parseInWorker` for untrusted bytes.
 *
 * @param name the file's name, used in messages, and as the title of a document without one
 * @throws EtudeError INVALID_ARGUMENT for bytes of another format, PAYLOAD_TOO_LARGE beyond a limit
 */
export async function parseDocument(bytes: Uint8Array, mediaType: MediaType, name: string): Promise<ParsedDocument> {
  const { bytesMax } = PARSE_LIMITS;
  if (!MEDIA_TYPES.includes(mediaType))
    throw unreadable(name, `has media type ${JSON.stringify(mediaType)}; it can be ${MEDIA_TYPES.join(', ')}`);
  if (bytes.length > bytesMax)
    throw tooLarge(name, `is ${bytes.length} bytes; at most ${bytesMax} are read`, 'split it into several files');
  if (bytes.length === 0) throw unreadable(name, 'is empty');
  try {
    return mediaType === 'application/pdf' ? await parsePdf(bytes, name) : OF_TEXT[mediaType](decodeText(bytes, name), name);
  } catch (error) {
    if (errorCode(error) !== 'INTERNAL') throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw unreadable(name, `cannot be read as ${mediaType}: ${reason}`, error);
  }
}

/** @throws EtudeError INVALID_ARGUMENT if the bytes are not UTF-8 */
function decodeText(bytes: Uint8Array, name: string): string {
  if (bytes.includes(0)) throw unreadable(name, 'contains zero bytes; save it as UTF-8 text');
  try {
    return cleanText(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw unreadable(name, 'is not valid UTF-8; save it as UTF-8', error);
  }
}

const TITLE_CHARS_MAX = 100;

/** Parses plain text as one section, because it has no recognisable headings. A first line before an empty line is the title. */
function parseText(text: string, name: string): ParsedDocument {
  const builder = new SectionBuilder(name);
  for (const block of text.split(/\n(?:[ \t]*\n)+/)) builder.block(block);
  const first = text.trimStart();
  const line = first.slice(0, TITLE_CHARS_MAX + 1).split('\n', 1)[0] ?? '';
  const alone = line.length <= TITLE_CHARS_MAX && /^[ \t]*\n/.test(first.slice(line.length + 1, line.length + 100));
  return builder.build(alone ? line : null);
}

/** Scripts and hidden parts are dropped when the HTML is read. */
const AS_HTML = { allowDangerousHtml: true, extensions: [gfmTable()], htmlExtensions: [gfmTableHtml()] };
const PIECE_CHARS_MIN = 200_000;

function parseMarkdown(text: string, name: string): ParsedDocument {
  const { title, body } = splitFrontMatter(text);
  const builder = new SectionBuilder(name);
  for (const piece of piecesOf(body)) addHtml(micromark(piece, AS_HTML), builder);
  return builder.build(title);
}

/** Splits a long text at headings, because the parser's events take about a hundred times the memory of its text. */
function* piecesOf(text: string): Iterable<string> {
  let start = 0;
  let fence: string | null = null;
  for (const match of text.matchAll(/^ {0,3}(?:(`{3,}|~{3,})|#{1,6}[ \t])/gm)) {
    const ticks = match[1];
    if (ticks !== undefined) {
      if (fence === null) fence = ticks;
      else if (ticks.startsWith(fence)) fence = null;
    } else if (fence === null && match.index - start > PIECE_CHARS_MIN) {
      yield text.slice(start, match.index);
      start = match.index;
    }
  }
  yield text.slice(start);
}

function splitFrontMatter(text: string): { title: string | null; body: string } {
  const match = /^---[ \t]*\n([^]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/.exec(text);
  if (!match?.[1] || !/^[\w-]+[ \t]*:/m.test(match[1])) return { title: null, body: text };
  const title = /^title[ \t]*:[ \t]*(.+)$/m
    .exec(match[1])?.[1]
    ?.trim()
    .replace(/^(["'])(.*)\1$/, '$2');
  return { title: title ?? null, body: text.slice(match[0].length) };
}
