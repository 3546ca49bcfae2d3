import { createHash } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { DocumentHead, ImportDocumentRequest, Memory as MemoryService } from '@etude/contracts/gen/etude/v1/memory_pb';
import { type DocumentChunk, DocumentRecord, type Scope } from '@etude/contracts/memory';
import { isVisible } from '@etude/contracts/visible-text';
import { chunkDocument } from '@etude/documents/chunk-document';
import { MEDIA_TYPES, type MediaType, mediaTypeOf } from '@etude/documents/document';
import { parseInWorker } from '@etude/documents/parse-in-worker';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { ownScope, readScope } from '../readers/readers.js';
import { afterPageToken, optionalRequestId, pageToken } from '../wire/names.js';
import { boundedCount, invalidField, parseField } from '../wire/validation.js';
import type { MemoryDeps } from './record-calls.js';
import { documentMessage } from './record-message.js';

const PAGE = { max: 1_000, standard: 100 };

/** Documents of `etude.v1.Memory`: imported, listed, deleted. */
export const documentCalls = {
  async importDocument(requests, call, deps) {
    const { head, data } = await readHead(requests);
    const input = { head, data, scope: ownScope(call, head), at: Date.now() };
    const { document, outcome } = await importDocument(input, await deps.memory.open(), call.signal);
    return { document: documentMessage(document), outcome };
  },

  async listDocuments(request, call, deps) {
    const scope = readScope(call, request);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const bound = ['ListDocuments', scope];
    const afterKey = afterPageToken(request.pageToken, bound);
    const { semantic } = await deps.memory.open();
    // One more than asked for tells whether a page follows.
    const found = await semantic.documents(scope, { limit: pageSize + 1, ...(afterKey === null ? {} : { afterKey }) });
    const page = found.slice(0, pageSize);
    return {
      documents: page.map(documentMessage),
      nextPageToken: pageToken(found.length > pageSize ? (page.at(-1)?.id ?? null) : null, bound),
    };
  },

  async deleteDocument({ id, requestId }, call, deps) {
    optionalRequestId(requestId);
    const { semantic } = await deps.memory.open();
    if (!(await semantic.removeDocument(readScope(call), id))) {
      throw new EtudeError('NOT_FOUND', `There is no document ${JSON.stringify(id)}; list the documents to see which there are.`);
    }
    return {};
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

const BYTES_MAX = 32 * 1024 * 1024;
const PART_BYTES_MAX = 1024 * 1024;

const Sha256 = z.string().regex(/^([0-9a-f]{64})?$/, 'must be 64 hexadecimal digits in lower case, or empty');
const Media = z.enum(MEDIA_TYPES, { error: `must be one of ${MEDIA_TYPES.join(', ')}` });

export interface DocumentStream {
  readonly head: DocumentHead;
  readonly data: AsyncIterable<Uint8Array>;
}

/** The first message of an import, and the bytes behind it. @throws EtudeError INVALID_ARGUMENT */
export async function readHead(requests: AsyncIterable<ImportDocumentRequest>): Promise<DocumentStream> {
  const incoming = requests[Symbol.asyncIterator]();
  const first = await incoming.next();
  const part = first.done ? undefined : first.value.part;
  if (part?.case !== 'head') throw invalidField('head', 'is required in the first message of an import');
  return { head: part.value, data: bytesOf(incoming) };
}

async function* bytesOf(incoming: AsyncIterator<ImportDocumentRequest>): AsyncGenerator<Uint8Array> {
  for (let next = await incoming.next(); !next.done; next = await incoming.next()) {
    const { part } = next.value;
    if (part.case !== 'data') throw invalidField(part.case ?? 'part', 'must be data in every message but the first');
    if (part.value.byteLength > PART_BYTES_MAX) {
      throw invalidField('data', `must not have more than ${PART_BYTES_MAX} bytes in one message; it has ${part.value.byteLength}`);
    }
    yield part.value;
  }
}

export interface DocumentImport extends DocumentStream {
  readonly scope: Scope;
  /** ms since 1970 */
  readonly at: number;
}

/** @throws EtudeError INVALID_ARGUMENT for what can't be read, PAYLOAD_TOO_LARGE */
export async function importDocument(
  { head, data, scope, at }: DocumentImport,
  memory: Pick<Memory, 'semantic'>,
  signal: AbortSignal,
): Promise<{ document: DocumentRecord; outcome: 'added' | 'replaced' | 'unchanged' }> {
  const name = parseField(DocumentRecord.shape.name, head.name, 'head.name');
  const mediaType = mediaTypeFor(head);
  const announced = parseField(Sha256, head.sha256, 'head.sha256');
  const id = `d${digestOf([scope, name]).slice(0, 32)}`;
  const known = announced === '' ? null : await memory.semantic.wholeDocument(scope, id);
  if (known?.digest === announced) return { document: known, outcome: 'unchanged' };
  const bytes = await collect(data);
  const digest = createHash('sha256').update(bytes).digest('hex');
  if (announced !== '' && announced !== digest) {
    throw invalidField('head.sha256', `is ${announced}, but what arrived has ${digest}; send the document again`);
  }
  const parsed = await parseInWorker(bytes, mediaType, { name }, signal);
  const pieces = chunkDocument(parsed);
  if (!pieces.some(({ text }) => isVisible(text)))
    throw new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(name)} has no text that could be found; nothing was imported`);
  const document: DocumentRecord = {
    id,
    scope,
    name,
    title: parsed.title || name,
    mediaType,
    digest,
    bytes: bytes.byteLength,
    chunks: pieces.length,
    createdAt: at,
  };
  const chunks = pieces.map(({ index, headings, page, text }): DocumentChunk => ({
    id: `${id}.${digestOf([index, headings, text]).slice(0, 16)}`,
    scope,
    documentId: id,
    index,
    headings: [...headings],
    page,
    text,
    createdAt: at,
  }));
  return { document, outcome: await memory.semantic.storeDocument(document, chunks, signal) };
}

function mediaTypeFor({ name, mediaType }: DocumentHead): MediaType {
  if (mediaType !== '') return parseField(Media, mediaType, 'head.media_type');
  return mediaTypeOf(name);
}

async function collect(data: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of data) {
    size += part.byteLength;
    if (size > BYTES_MAX) {
      throw new EtudeError('PAYLOAD_TOO_LARGE', `A document may have ${BYTES_MAX} bytes, and this one has more; split it.`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
