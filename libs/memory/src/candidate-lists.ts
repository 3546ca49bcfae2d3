import type { Candidate, Candidates } from './record-store.js';

/** The results of one search, under the ids that the database itself uses. */
export interface Found<Id> {
  readonly records: ReadonlyMap<Id, Omit<Candidate, 'cosine' | 'bm25'>>;
  readonly near: Iterable<Id>;
  /** BM25 scores of the records that the words found. */
  readonly bm25s: ReadonlyMap<Id, number>;
  readonly cosineOf: (id: Id) => number;
}

/** Builds both lists in the order that `RecordStore.search` promises. A record outside the word list has a `bm25` of 0. */
export function candidateLists<Id>({ records, near, bm25s, cosineOf }: Found<Id>, limit: number): Candidates {
  const listOf = (ids: Iterable<Id>) =>
    [...ids].flatMap((id) => {
      const record = records.get(id);
      return record === undefined ? [] : [{ ...record, cosine: cosineOf(id), bm25: bm25s.get(id) ?? 0 }];
    });
  const words = ordered(listOf(bm25s.keys()), ({ bm25 }) => bm25, limit);
  const inWords = new Set(words.map(nameOf));
  const dense = ordered(listOf(near), ({ cosine }) => cosine, limit);
  return { words, dense: dense.map((candidate) => (inWords.has(nameOf(candidate)) ? candidate : { ...candidate, bm25: 0 })) };
}

/** The `limit` candidates with the highest values. Equal values are ordered by age. */
export function ordered(candidates: readonly Candidate[], valueOf: (candidate: Candidate) => number, limit: number): Candidate[] {
  return candidates.toSorted((a, b) => valueOf(b) - valueOf(a) || byAge(a, b)).slice(0, limit);
}

/** Newest first, then by key. */
export function byAge(a: Pick<Candidate, 'createdAt' | 'key'>, b: Pick<Candidate, 'createdAt' | 'key'>): number {
  return b.createdAt - a.createdAt || compareKeys(a.key, b.key);
}

/** Compares by code points, which is also the order of UTF-8 bytes. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** A map key for a record, unique within its layer. */
export function nameOf({ kind, key }: Pick<Candidate, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}
