import { errorCode } from '@etude/contracts/errors';
import { PARSE_LIMITS, tooLarge, unreadable, MEDIA_TYPES, type MediaType, type ParsedDocument } from './document.js';
import { parseHtml } from './parse-html.js';
import { parseMarkdown } from './parse-markdown.js';
import { parseText } from './parse-text.js';
import { parsePdf } from './pdf/parse-pdf.js';

type Parse = (bytes: Uint8Array, name: string) => ParsedDocument | Promise<ParsedDocument>;

const PARSERS: Readonly<Record<MediaType, Parse>> = {
  'text/markdown': parseMarkdown,
  'text/plain': parseText,
  'text/html': parseHtml,
  'application/pdf': parsePdf,
};

/**
 * Parses a document in this process, with no limit of time or memory. Use `parseInWorker` for untrusted bytes.
 *
 * @param name of the file, used in messages and as the title of a document that has none
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
    return await PARSERS[mediaType](bytes, name);
  } catch (error) {
    if (errorCode(error) !== 'INTERNAL') throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw unreadable(name, `cannot be read as ${mediaType}: ${reason}`, error);
  }
}
