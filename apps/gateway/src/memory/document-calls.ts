import { hash } from 'node:crypto';
import { setImmediate as letOthers } from 'node:timers/promises';
import { EtudeError } from '@etude/contracts/errors';
import {
  type DocumentHead,
  DocumentHeadSchema,
  type ImportDocumentRequest,
  type Memory as MemoryService,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { type DocumentChunk, DocumentRecord, type Scope } from '@etude/contracts/memory';
import { isVisible } from '@etude/contracts/visible-text';
import { chunkDocument } from '@etude/documents/chunk-document';
import { MEDIA_TYPES, mediaTypeOf, type ParsedDocument, type Section } from '@etude/documents/document';
import { parseInWorker } from '@etude/documents/parse-in-worker';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { ownScope, readScope } from '../readers/readers.js';
import { fromWire } from '@etude/contracts/wire/messages';
import { askedPage } from '../wire/names.js';
import { invalidField, opened } from '@etude/contracts/wire/validation';
import type { MemoryDeps } from './record-calls.js';
import { documentMessage } from './record-message.js';
import { deleteNamed } from './single-record-calls.js';

const PAGE = { max: 1_000, standard: 100 };

export const documentCalls = {
  async importDocument(requests, call, deps) {
    const { head, rest } = await opened(requests, 'head');
    const scope = ownScope(call, head);
    const { document, ...done } = await importDocument(head, bytesOf(rest), scope, await deps.memory.open(), call.signal);
    return { document: documentMessage(document), ...done };
  },

  async listDocuments(request, call, deps) {
    const scope = readScope(call, request);
    const { limit, after, cut } = askedPage(request, PAGE, ['ListDocuments', scope]);
    const { semantic } = await deps.memory.open();
    const found = await semantic.documents(scope, { limit, ...(after === null ? {} : { afterKey: after }) });
    const { items, nextPageToken } = cut(found, (last) => last.id);
    return { documents: items.map(documentMessage), nextPageToken };
  },

  async deleteDocument(request, call, deps) {
    await deleteNamed('document', request, call, deps);
    return {};
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

const BYTES_MAX = 32 * 1024 * 1024;

const Head = DocumentRecord.pick({ name: true }).extend({
  mediaType: z.enum(MEDIA_TYPES, { error: `must be one of ${MEDIA_TYPES.join(', ')}` }).optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits in lower case, or empty')
    .optional(),
});

async function* bytesOf(requests: AsyncIterable<ImportDocumentRequest>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const { part } of requests) {
    if (part.case !== 'data') throw invalidField('data', 'must be in every message after the first');
    size += part.value.byteLength;
    if (size > BYTES_MAX) throw new EtudeError('PAYLOAD_TOO_LARGE', `A document may have at most ${BYTES_MAX} bytes. Split the document.`);
    yield part.value;
  }
}

/** @throws EtudeError INVALID_ARGUMENT if the document can't be read or has no text; PAYLOAD_TOO_LARGE */
async function importDocument(
  head: DocumentHead,
  data: AsyncIterable<Uint8Array>,
  scope: Scope,
  { semantic }: Pick<Memory, 'semantic'>,
  signal: AbortSignal,
) {
  const createdAt = Date.now();
  const { name, mediaType = mediaTypeOf(head.name), sha256: announced } = fromWire(Head, DocumentHeadSchema, head, { root: 'head' });
  // The id is equal in every tenant, so that new content also replaces a document that was exported from another tenant.
  const id = `d${hash('sha256', JSON.stringify([scope.agent, scope.user, name])).slice(0, 32)}`;
  const known = announced === undefined ? null : await semantic.wholeDocument(scope, id);
  if (known !== null && known.digest === announced) return { document: known, outcome: 'unchanged', maskedSecrets: 0 };
  const bytes = Buffer.concat(await Array.fromAsync(data));
  const digest = hash('sha256', bytes);
  if (announced !== undefined && announced !== digest)
    throw invalidField('head.sha256', `is ${announced}, but the received document has ${digest}. Send the document again`);
  const { parsed, maskedSecrets } = await withoutSecrets(await parseInWorker(bytes, mediaType, { name }, signal));
  const pieces = chunkDocument(parsed);
  if (!pieces.some(({ text }) => isVisible(text)))
    throw new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(name)} has no text. Import a document with text`);
  const title = parsed.title || name;
  const counts = { bytes: bytes.byteLength, chunks: pieces.length };
  const document: DocumentRecord = { id, scope, name, title, mediaType, digest, ...counts, createdAt };
  const chunks = pieces.map(({ index, headings, page, text }): DocumentChunk => {
    const chunkId = `${id}.${hash('sha256', JSON.stringify([index, headings, text])).slice(0, 16)}`;
    return { id: chunkId, scope, documentId: id, index, headings: [...headings], page, text, createdAt };
  });
  return { document, outcome: await semantic.storeDocument(document, chunks, signal), maskedSecrets };
}

/** Masks secrets instead of refusing them: a person often can't change a document, and documents may show example keys. */
async function withoutSecrets(parsed: ParsedDocument): Promise<{ parsed: ParsedDocument; maskedSecrets: number }> {
  const { findSecrets, maskSecretsIn } = await import('@etude/analysis/find-secrets');
  let maskedSecrets = 0;
  const sections: Section[] = [];
  for (const section of parsed.sections) {
    maskedSecrets += findSecrets(section.text).length;
    sections.push(maskSecretsIn(section));
    await letOthers();
  }
  return { parsed: { title: maskSecretsIn(parsed.title), sections }, maskedSecrets };
}
