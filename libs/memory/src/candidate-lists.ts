import type { Candidate, Candidates } from './record-store.js';

/** What a database found for one search, by the ids that it uses itself. */
export interface Found<Id> {
  readonly records: ReadonlyMap<Id, Omit<Candidate, 'cosine' | 'bm25'>>;
  /** Records of the vector list. */
  readonly near: Iterable<Id>;
  /** Records of the word list with their scores. */
  readonly bm25s: ReadonlyMap<Id, number>;
  readonly cosineOf: (id: Id) => number;
}

/** Both lists in the order that `RecordStore.search` promises. Only places in the word list have a `bm25`. */
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

/** The best by a value, at most `limit`. */
export function ordered(candidates: readonly Candidate[], valueOf: (candidate: Candidate) => number, limit: number): Candidate[] {
  return candidates.toSorted((a, b) => valueOf(b) - valueOf(a) || byAge(a, b)).slice(0, limit);
}

/** Newest first, then by key. */
export function byAge(a: Pick<Candidate, 'createdAt' | 'key'>, b: Pick<Candidate, 'createdAt' | 'key'>): number {
  return b.createdAt - a.createdAt || compareKeys(a.key, b.key);
}

/** By code points, which is the order of the bytes in UTF-8. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** A record's name within its layer, for maps. */
export function nameOf({ kind, key }: Pick<Candidate, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}
