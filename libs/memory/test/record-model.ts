import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import { bm25Weight, idf, queryTerms, termCounts } from '@etude/domain/retrieval/words';
import type { Candidate, Change, IndexedText, Owners, RecordField, RecordFilter, StoredRecord, StoreQuery } from '../src/record-store.js';
import { RECORD_FIELDS } from '../src/record-store.js';

interface Kept {
  readonly record: StoredRecord;
  readonly indexed: readonly IndexedText[];
}

/** The simplest record store: an array that every call scans. */
export class RecordModel {
  #kept: Kept[] = [];
  #removed: Kept[] = [];

  /** A refused update or replacement ends the list. Later changes aren't applied. */
  write(changes: readonly Change[]): boolean[] {
    let stopped = false;
    return changes.map((change) => {
      const taken = !stopped && this.#apply(change);
      stopped ||= !taken && change.do !== 'insert';
      return taken;
    });
  }

  seen(scope: ReadScope, layer: MemoryLayer, filter: RecordFilter): StoredRecord[] {
    return this.#kept.map(({ record }) => record).filter((record) => sees(scope, record) && record.layer === layer && fits(filter, record));
  }

  owned(owners: Owners, layer: MemoryLayer, filter: RecordFilter): StoredRecord[] {
    return this.#kept
      .map(({ record }) => record)
      .filter((record) => owns(owners, record) && record.layer === layer && fits(filter, record));
  }

  remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter): number {
    const isGone = ({ record }: Kept) => owns(owners, record) && record.layer === layer && fits(filter, record);
    const gone = this.#kept.filter(isGone);
    this.#kept = this.#kept.filter((kept) => !isGone(kept));
    this.#removed.push(...gone);
    return gone.length;
  }

  /**
   * Both lists without a limit, ordered.
   * @param removedCount whether removed records still count in word frequencies, as in Qdrant until it rewrites a segment
   */
  search(
    scope: ReadScope,
    layer: MemoryLayer,
    query: Omit<StoreQuery, 'limit'>,
    removedCount = false,
  ): { dense: Candidate[]; words: Candidate[] } {
    const documents = documentsIn(this.#kept, scope, layer);
    const counted = [...documents, ...(removedCount ? documentsIn(this.#removed, scope, layer) : [])];
    const n = counted.filter(({ terms }) => terms.words > 0).length;
    const idfs = queryTerms(query.text).map(
      (term) => [term, idf(n, counted.filter(({ terms }) => terms.counts.has(term)).length)] as const,
    );
    const found = documents
      .filter(({ record }) => sees(scope, record) && fits({ ...query, shown: query.shown ?? true }, record))
      .map(({ record, indexed, terms }) => {
        const bm25 = idfs.reduce((sum, [term, weight]) => sum + weight * bm25Weight(terms.counts.get(term) ?? 0, terms.words), 0);
        const cosines = indexed.flatMap(({ vector }) => (vector && query.vector ? [cosineOf(vector, query.vector)] : []));
        const { kind, key, createdAt, worth } = record;
        return { kind, key, createdAt, worth, bm25, cosine: cosines.length > 0 ? Math.max(...cosines) : 0, hasVector: cosines.length > 0 };
      });
    return {
      dense: found.filter(({ hasVector }) => hasVector).toSorted((a, b) => b.cosine - a.cosine || newestThenKey(a, b)),
      words: found.filter(({ bm25 }) => bm25 > 0).toSorted((a, b) => b.bm25 - a.bm25 || newestThenKey(a, b)),
    };
  }

  #apply(change: Change): boolean {
    const at = this.#kept.findIndex(({ record }) => isSame(record, change.record));
    const known = this.#kept[at];
    if (change.do === 'insert') {
      if (known !== undefined) return false;
      this.#kept.push({ record: { ...change.record, revision: 1 }, indexed: change.indexed });
      return true;
    }
    if (known === undefined || known.record.revision !== change.revision) return false;
    const indexed = change.do === 'replace' ? change.indexed : known.indexed;
    this.#kept[at] = { record: { ...change.record, revision: change.revision + 1 }, indexed };
    return true;
  }
}

function documentsIn(kept: readonly Kept[], { tenant }: ReadScope, layer: MemoryLayer) {
  return kept
    .filter(({ record }) => record.layer === layer && record.scope.tenant === tenant)
    .map((each) => ({ ...each, terms: termCounts(each.indexed.map(({ text }) => text)) }));
}

export function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function newestThenKey(a: Pick<Candidate, 'createdAt' | 'key'>, b: Pick<Candidate, 'createdAt' | 'key'>): number {
  return b.createdAt - a.createdAt || byCodePoints(a.key, b.key);
}

function cosineOf(a: Float32Array, b: Float32Array): number {
  const dot = a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
  return dot / (Math.hypot(...a) * Math.hypot(...b));
}

function isSame(a: Pick<StoredRecord, 'scope' | 'layer' | 'kind' | 'key'>, b: Pick<StoredRecord, 'scope' | 'layer' | 'kind' | 'key'>) {
  return a.scope.tenant === b.scope.tenant && a.layer === b.layer && a.kind === b.kind && a.key === b.key;
}

function sees({ tenant, agent, user = null, also = [] }: ReadScope, { scope }: StoredRecord): boolean {
  const mine = user === null || scope.user === null || scope.user === user;
  return scope.tenant === tenant && (agent === null || scope.agent === agent || also.includes(scope.agent)) && mine;
}

function owns({ tenant, agent, user }: Owners, { scope }: StoredRecord): boolean {
  return scope.tenant === tenant && (agent === undefined || scope.agent === agent) && (user === undefined || scope.user === user);
}

function fits(filter: RecordFilter, record: StoredRecord): boolean {
  const { keys, kinds, where = {}, shown, createdSince = -Infinity, createdBefore = Infinity, worthMin = -Infinity } = filter;
  return (
    (kinds === undefined || kinds.includes(record.kind)) &&
    (keys === undefined || keys.includes(record.key)) &&
    (shown === undefined || record.shown === shown) &&
    record.createdAt >= createdSince &&
    record.createdAt < createdBefore &&
    record.worth >= worthMin &&
    RECORD_FIELDS.every((field) => where[field] === undefined || sharesOne(valuesOf(where, field), valuesOf(record.fields, field)))
  );
}

/** Whether a record comes after a place in the order `newest`. */
export function isBehind(place: Pick<StoredRecord, 'createdAt' | 'key'> | undefined, { createdAt, key }: StoredRecord): boolean {
  if (place === undefined || createdAt < place.createdAt) return true;
  return createdAt === place.createdAt && byCodePoints(key, place.key) < 0;
}

function sharesOne(wanted: readonly string[], had: readonly string[]): boolean {
  return wanted.some((value) => had.includes(value));
}

function valuesOf(fields: StoredRecord['fields'], field: RecordField): readonly string[] {
  const value = fields[field] ?? [];
  return typeof value === 'string' ? [value] : value;
}
