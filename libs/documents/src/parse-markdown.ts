import { micromark } from 'micromark';
import { gfmTable, gfmTableHtml } from 'micromark-extension-gfm-table';
import { decodeText } from './parse-text.js';
import type { ParsedDocument } from './document.js';
import { addHtml } from './parse-html.js';
import { SectionBuilder } from './section-builder.js';

/** Scripts and hidden parts are dropped when the HTML is read. */
const AS_HTML = { allowDangerousHtml: true, extensions: [gfmTable()], htmlExtensions: [gfmTableHtml()] };
const PIECE_CHARS_MIN = 200_000;

/** Parses Markdown with tables, front matter and embedded HTML. The Markdown becomes HTML, which is read as by `parseHtml`. */
export function parseMarkdown(bytes: Uint8Array, name: string): ParsedDocument {
  const { title, body } = splitFrontMatter(decodeText(bytes, name));
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
