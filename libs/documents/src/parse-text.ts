import type { ParsedDocument } from './document.js';
import { unreadable } from './parse-limits.js';
import { SectionBuilder } from './section-builder.js';

const BOMS = [
  { encoding: 'utf-8', bytes: [0xef, 0xbb, 0xbf] },
  { encoding: 'utf-16le', bytes: [0xff, 0xfe] },
  { encoding: 'utf-16be', bytes: [0xfe, 0xff] },
] as const;

/** Control characters to drop: all but tab, line feed, carriage return and form feed. */
// oxlint-disable-next-line no-control-regex -- these are what is taken out
const CONTROLS = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/g;

/**
 * Decodes a file as UTF-8, or as its byte order mark says. Line ends and form feeds become `\n`; other control characters are dropped.
 *
 * @throws EtudeError INVALID_ARGUMENT where the bytes are not valid in that encoding
 */
export function decodeText(bytes: Uint8Array, name: string): string {
  const bom = BOMS.find((known) => known.bytes.every((byte, i) => bytes[i] === byte));
  const encoding = bom?.encoding ?? 'utf-8';
  if (!bom && bytes.subarray(0, 8_192).includes(0)) {
    throw unreadable(name, 'holds zero bytes: it is no text, or UTF-16 without a byte order mark; save it as UTF-8');
  }
  try {
    return cleanText(new TextDecoder(encoding, { fatal: true }).decode(bytes));
  } catch (error) {
    throw unreadable(name, `is not valid ${encoding.toUpperCase()}; save it as UTF-8`, error);
  }
}

/** Turns line ends into `\n` and drops control characters. */
export function cleanText(text: string): string {
  return text
    .replaceAll(/\r\n?|\f|\u2028/g, '\n')
    .replaceAll('\u2029', '\n\n')
    .replaceAll(CONTROLS, '');
}

const TITLE_CHARS_MAX = 100;

/** Parses plain text as one section, since headings can't be recognised in it. A first line that stands alone is the title. */
export function parseText(bytes: Uint8Array, name: string): ParsedDocument {
  const text = decodeText(bytes, name);
  const builder = new SectionBuilder(name);
  for (const block of text.split(/\n(?:[ \t]*\n)+/)) builder.block(block);
  const first = text.trimStart();
  const line = first.slice(0, TITLE_CHARS_MAX + 1).split('\n', 1)[0] ?? '';
  const alone = line.length <= TITLE_CHARS_MAX && /^[ \t]*\n/.test(first.slice(line.length + 1, line.length + 100));
  return builder.build(alone ? line : null);
}
