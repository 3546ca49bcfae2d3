import { EtudeError, errorCode, isAbort } from '@etude/contracts/errors';
import { MEDIA_TYPES, type MediaType, type ParsedDocument } from './document.js';
import { parseHtml } from './parse-html.js';
import { nestedTooDeep, PARSE_LIMITS, type ParseContext, type ParseOptions, tooLarge, unreadable } from './parse-limits.js';
import { parseMarkdown } from './parse-markdown.js';
import { parseText } from './parse-text.js';
import { parsePdf } from './pdf/parse-pdf.js';

type Parse = (bytes: Uint8Array, context: ParseContext) => ParsedDocument | Promise<ParsedDocument>;

const PARSERS: Readonly<Record<MediaType, Parse>> = {
  'text/markdown': parseMarkdown,
  'text/plain': parseText,
  'text/html': parseHtml,
  'application/pdf': parsePdf,
};

/**
 * Parses a document in this process, with no limit of time or memory. Use `parseInWorker` for untrusted bytes.
 *
 * @throws EtudeError INVALID_ARGUMENT for bytes that are no such document, PAYLOAD_TOO_LARGE beyond a limit, CANCELLED
 */
export async function parseDocument(
  bytes: Uint8Array,
  mediaType: MediaType,
  options: ParseOptions,
  signal: AbortSignal,
): Promise<ParsedDocument> {
  const context: ParseContext = { name: options.name, limits: { ...PARSE_LIMITS, ...options.limits }, signal };
  requireParsable(bytes, mediaType, context);
  try {
    return await PARSERS[mediaType](bytes, context);
  } catch (error) {
    throw clear(error, mediaType, context);
  }
}

function requireParsable(bytes: Uint8Array, mediaType: MediaType, { name, limits, signal }: ParseContext): void {
  if (signal.aborted) throw cancelled(name);
  if (!MEDIA_TYPES.includes(mediaType)) {
    throw unreadable(name, `has media type ${JSON.stringify(mediaType)}; it can be ${MEDIA_TYPES.join(', ')}`);
  }
  if (bytes.length > limits.bytesMax) {
    throw tooLarge(name, `is ${bytes.length} bytes; at most ${limits.bytesMax} are read`, 'split it into several files');
  }
  if (bytes.length === 0) throw unreadable(name, 'is empty');
}

const cancelled = (name: string) => new EtudeError('CANCELLED', `reading ${JSON.stringify(name)} was cancelled`);

/** Turns an error of the parser into an EtudeError about the document. */
function clear(error: unknown, mediaType: MediaType, context: ParseContext): unknown {
  if (isAbort(error) || context.signal.aborted) return cancelled(context.name);
  if (errorCode(error) !== 'INTERNAL') return error;
  if (error instanceof RangeError && /call stack/i.test(error.message)) return nestedTooDeep(context);
  const reason = error instanceof Error ? error.message : String(error);
  return unreadable(context.name, `cannot be read as ${mediaType}: ${reason}`, error);
}
