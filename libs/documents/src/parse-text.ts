import { unreadable, type ParsedDocument } from './document.js';
import { SectionBuilder } from './section-builder.js';

/** Control characters to drop: all but tab, line feed, carriage return and form feed. */
// oxlint-disable-next-line no-control-regex -- the function drops these characters
const CONTROLS = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/g;

/**
 * Decodes a file as UTF-8. Line ends and form feeds become `\n`; other control characters are dropped.
 *
 * @throws EtudeError INVALID_ARGUMENT if the bytes are not UTF-8
 */
export function decodeText(bytes: Uint8Array, name: string): string {
  if (bytes.includes(0)) throw unreadable(name, 'contains zero bytes; save it as UTF-8 text');
  try {
    return cleanText(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw unreadable(name, 'is not valid UTF-8; save it as UTF-8', error);
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

/** Parses plain text as one section, because it has no recognisable headings. A first line before an empty line is the title. */
export function parseText(bytes: Uint8Array, name: string): ParsedDocument {
  const text = decodeText(bytes, name);
  const builder = new SectionBuilder(name);
  for (const block of text.split(/\n(?:[ \t]*\n)+/)) builder.block(block);
  const first = text.trimStart();
  const line = first.slice(0, TITLE_CHARS_MAX + 1).split('\n', 1)[0] ?? '';
  const alone = line.length <= TITLE_CHARS_MAX && /^[ \t]*\n/.test(first.slice(line.length + 1, line.length + 100));
  return builder.build(alone ? line : null);
}
