import type { Fields, MemoryRecord, RecordFilter, RecordStore, StoredRecord } from '../record-store.js';
import { LAYER } from './fact-records.js';
import { bodyOf, type LayerDeps, parseBody, putRecord, untilTaken, loadOne } from './records.js';
import { insertMissing } from './repeats.js';
import type { DocumentChunk, DocumentRecord } from '@etude/contracts/memory';
import { requireOwn } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';

/**
 * Stores a document with its chunks. It inserts the new chunks, stores their digest with the document, then removes the old chunks. After a
 * crash a repeat completes the work. If nobody repeats it, `mendDocuments` removes the stray chunks.
 *
 * @param chunks all chunks of the document, in order; their owner is the document's owner
 * @throws an AbortError, between batches, when `signal` aborts
 */
export async function storeDocument(
  deps: LayerDeps,
  document: DocumentRecord,
  chunks: readonly DocumentChunk[],
  signal?: AbortSignal,
): Promise<'added' | 'replaced' | 'unchanged'> {
  chunks.forEach(({ scope }) => requireOwn(document.scope.tenant, scope));
  const { store } = deps;
  const digest = editionDigest(document, chunks);
  const load = () => loadOne(store, document.scope, LAYER, 'document', document.id);
  const known = await load();
  if (known !== null && digestOf(known) === digest && (await isWhole(store, document, digest))) return 'unchanged';
  await insertMissing(
    deps,
    chunks.map((chunk) => chunkRecord(document, digest, chunk)),
    signal,
  );
  const outcome = await untilTaken(`document ${document.id}`, async () => {
    const before = await load();
    if (before !== null && digestOf(before) === digest) return 'unchanged';
    if (!(await putRecord(store, documentRecord(document, digest), before))) return null;
    return before === null ? 'added' : 'replaced';
  });
  await removeStaleChunks(store, document);
  return outcome;
}

/** The document, if all of its chunks are stored and none belongs to another edition. null otherwise, also while it is being stored. */
export async function wholeDocument(store: RecordStore, scope: DocumentRecord['scope'], id: string): Promise<DocumentRecord | null> {
  const record = await loadOne(store, scope, LAYER, 'document', id);
  if (record === null) return null;
  const document = documentOf(record);
  return (await isWhole(store, document, digestOf(record))) ? document : null;
}

/** Removes chunks that have no document or belong to an older edition. Returns one sentence for each document it repaired. */
export async function mendDocuments(store: RecordStore, tenant: string): Promise<readonly string[]> {
  const scopes = new Map<string, DocumentRecord['scope']>();
  for await (const page of store.each({ tenant }, LAYER, { kinds: ['chunk'] }))
    for (const { fields, scope } of page) scopes.set(String(fields.document), scope);
  const mended: string[] = [];
  for (const [id, scope] of scopes) {
    const removed = await removeStaleChunks(store, { id, scope });
    if (removed > 0) mended.push(`removed ${removed} chunks of document ${id} that an interrupted import left`);
  }
  return mended;
}

async function isWhole(store: RecordStore, { id, scope, chunks }: DocumentRecord, digest: string): Promise<boolean> {
  const count = (where: Fields) => store.count(scope, LAYER, { kinds: ['chunk'], where: { document: id, ...where } });
  return (await count({})) === chunks && (await count({ digest })) === chunks;
}

/** Removes chunks of other editions. Reloads the document just before removing, so that it keeps chunks that another writer stored meanwhile. */
async function removeStaleChunks(store: RecordStore, { id, scope }: Pick<DocumentRecord, 'id' | 'scope'>): Promise<number> {
  const filter: RecordFilter = { kinds: ['chunk'], where: { document: id } };
  const digests = new Set<string>();
  for await (const page of store.each(scope, LAYER, filter)) for (const record of page) digests.add(digestOf(record));
  const current = await loadOne(store, scope, LAYER, 'document', id);
  let removed = 0;
  for (const digest of digests) {
    if (current !== null && digestOf(current) === digest) continue;
    removed += await store.remove(scope, LAYER, { kinds: ['chunk'], where: { document: id, digest } });
  }
  return removed;
}

const digestOf = ({ fields }: StoredRecord) => String(fields.digest);

export function documentOf(record: StoredRecord): DocumentRecord {
  return parseBody<DocumentRecord>(record).value;
}

/** Covers the chunk texts, so that another edition arises when a newer parser cuts the same file differently. */
function editionDigest({ digest, title }: DocumentRecord, chunks: readonly DocumentChunk[]): string {
  return contentDigest([digest, title, chunks.map(({ text, headings }) => [text, headings])]);
}

const INDEX_DIGITS = 6;
/** Documents all get the highest worth, since nothing measures how useful one is. */
const WORTH = 1;

/** @param digest the result of `editionDigest` */
export function documentRecord(document: DocumentRecord, digest: string): MemoryRecord {
  const { id, scope, name, title, createdAt } = document;
  const named = { layer: LAYER, kind: 'document', key: id, scope, createdAt, worth: WORTH, shown: false } as const;
  return { ...named, fields: { id, digest }, title, text: name, sources: [name], body: bodyOf(document) };
}

/** The record of a chunk. Its body includes the document's title, so that search covers the title too. */
export function chunkRecord(
  { id: document, name, title }: Pick<DocumentRecord, 'id' | 'name' | 'title'>,
  digest: string,
  chunk: DocumentChunk,
): MemoryRecord {
  const { id, scope, index, headings, text, createdAt } = chunk;
  const key = `${document}#${digest.slice(0, 16)}#${String(index).padStart(INDEX_DIGITS, '0')}`;
  const shownTitle = [title, ...headings].filter((part, at, parts) => part !== '' && part !== parts[at - 1]).join(' › ');
  const named = { layer: LAYER, kind: 'chunk', key, scope, createdAt, worth: WORTH, shown: true } as const;
  return { ...named, fields: { id, document, digest }, title: shownTitle, text, sources: [name], body: bodyOf({ ...chunk, title }) };
}
