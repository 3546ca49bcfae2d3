import type { DocumentChunk, DocumentRecord } from '@etude/contracts/memory';
import type { MemoryRecord } from '../record-store.js';
import { LAYER } from './semantic-records.js';
import { bodyOf } from './stored-body.js';

const INDEX_DIGITS = 6;
/** Nothing is known of how well it serves. */
const WORTH = 1;

/** `digest` is of the content and of how it was cut. */
export interface OfEdition<D> {
  readonly document: D;
  readonly digest: string;
}

export function nameKey(name: string): string {
  return `document ${name}`;
}

export function documentRecord({ document, digest }: OfEdition<DocumentRecord>): MemoryRecord {
  const { id, scope, name, title, createdAt } = document;
  const fields = { id, name: nameKey(name), digest };
  const named = { layer: LAYER, kind: 'document', key: id, scope } as const;
  return { ...named, createdAt, worth: WORTH, shown: false, fields, title, text: name, sources: [name], body: bodyOf(document) };
}

/** Its title is searched with its text. */
export function chunkRecord(
  { document: { id: document, name, title }, digest }: OfEdition<Pick<DocumentRecord, 'id' | 'name' | 'title'>>,
  chunk: DocumentChunk,
): MemoryRecord {
  const { id, scope, index, headings, text, createdAt } = chunk;
  const key = `${document}#${digest.slice(0, 16)}#${String(index).padStart(INDEX_DIGITS, '0')}`;
  const named = { layer: LAYER, kind: 'chunk', key, scope } as const;
  const shownTitle = [title, ...headings].filter((part, at, parts) => part !== '' && part !== parts[at - 1]).join(' › ');
  const fields = { id, document, digest };
  return {
    ...named,
    createdAt,
    worth: WORTH,
    shown: true,
    fields,
    title: shownTitle,
    text,
    sources: [name],
    body: bodyOf({ ...chunk, title }),
  };
}
