import { decodeText } from './decode-text.js';
import type { ParsedDocument } from './document.js';
import type { ParseContext } from './parse-limits.js';
import { SectionBuilder } from './section-builder.js';

const TITLE_CHARS_MAX = 100;

/** Plain text has no headings that could be told from its words; its first line is the title where it stands alone. */
export function parseText(bytes: Uint8Array, context: ParseContext): ParsedDocument {
  const text = decodeText(bytes, context.name);
  const builder = new SectionBuilder(context);
  for (const block of text.split(/\n(?:[ \t]*\n)+/)) builder.block(block);
  const first = text.trimStart();
  const line = first.slice(0, TITLE_CHARS_MAX + 1).split('\n', 1)[0] ?? '';
  const alone = line.length <= TITLE_CHARS_MAX && /^[ \t]*\n/.test(first.slice(line.length + 1, line.length + 100));
  return builder.build(alone ? line : null);
}
