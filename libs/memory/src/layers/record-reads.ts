import type { Memory, PlainRecord, RecordList, RecordListQuery } from '../memory.js';
import { LAYERS, RECORD_KINDS, type RecordKind, type RecordStore, type StoredRecord } from '../record-store.js';
import { idOf } from './memory-search.js';
import { parseBody } from './records.js';
import type { ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';

type Layer = Parameters<Memory['get']>[1];

/** Kinds that search finds in each layer. If several records have the same id, the first kind wins. */
const FOUND_KINDS: Readonly<Record<Layer, readonly RecordKind[]>> = {
  episodic: ['episode', 'transition'],
  semantic: ['fact', 'chunk', 'document', 'summary', 'reflection', 'conversation', 'turn'],
};

/** Reads a record of any layer by the id of its search hit; see `Memory.get`. */
export async function getRecord(store: RecordStore, scope: ReadScope, layer: Layer, id: string): Promise<PlainRecord | null> {
  requireScope(scope);
  const kinds = FOUND_KINDS[layer];
  const found = await store.find(scope, layer, { kinds, where: { id } }, { order: 'newest', limit: kinds.length });
  const known = found.length > 0 ? found : (await Promise.all(kinds.map((kind) => store.load(scope, layer, kind, [id])))).flat();
  const [record] = known.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
  return record === undefined ? null : plainRecord(record);
}

/** Records per request to the store. Small, because a record can have several MiB. */
const STEP = 32;
/** A page ends once its records have this many characters. */
const PAGE_CHARS = 8_000_000;

/** A page of records of one kind; see `Memory.list`. */
export async function listRecords(store: RecordStore, scope: ReadScope, query: RecordListQuery): Promise<RecordList> {
  requireScope(scope);
  const { kind, category, all = false, limit } = query;
  const layer = LAYERS.find((one) => (RECORD_KINDS[one] as readonly RecordKind[]).includes(kind))!;
  // Search finds chunks and turns, never the document or conversation itself.
  const shown = all || kind === 'document' || kind === 'conversation' ? {} : { shown: true };
  const filter = { kinds: [kind], where: category === undefined ? {} : { category }, ...shown };
  const records: StoredRecord[] = [];
  let [next, chars] = [query.after, 0];
  while (records.length < limit && chars < PAGE_CHARS) {
    const size = Math.min(STEP, limit - records.length);
    const found = await store.find(scope, layer, filter, {
      order: 'newest',
      limit: size + 1,
      ...(next === undefined ? {} : { after: next }),
    });
    records.push(...found.slice(0, size));
    const last = records.at(-1);
    if (found.length <= size || last === undefined) return { records: records.map(plainRecord), next: null };
    next = { createdAt: last.createdAt, key: last.key };
    chars += found.reduce((sum, { body }) => sum + body.length, 0);
  }
  return { records: records.map(plainRecord), next: next ?? null };
}

function plainRecord(record: StoredRecord): PlainRecord {
  const { layer, kind, scope } = record;
  const { value: fields } = parseBody<{ readonly createdAt: number }>(record);
  // A skill is stored by the time of its last change.
  return { id: idOf(record), layer, kind, scope, createdAt: fields.createdAt, fields };
}
