import type { MemoryLayer } from '@etude/contracts/task';
import type { Candidate, Candidates, RecordKind, StoreOptions, StoreQuery } from '../record-store.js';
import { type CollectionNames, vectorName, WORDS } from './collections.js';
import { compareCodePoints, decodeText } from './exact-text.js';
import { denseOf, type PointVectors, requireVector, type SparseVector, weightName } from './point-vectors.js';
import type { Condition, ScoredPoint, Search, TenantPoints } from './tenant-points.js';

const CANDIDATE = ['kind', 'key', 'created_at', 'worth', 'worded'];
/** Equal values are ordered here, so more are asked for than wanted. */
const TIES = 16;
/** How many times as many words' candidates are asked for where the server counts words of all tenants. */
const OVERSAMPLING = 2;
/** Vectors are of single precision. */
const PRECISION = 1e6;
/** What was found by words has at least this. */
const BM25_MIN = 1e-6;

/** How many records with words a tenant has in each layer; of many it need not be known to the last one. */
export class WordedCounts {
  static readonly #MANY = 1_000;
  static readonly #KEPT_MS = 10_000;
  readonly #kept = new Map<string, { readonly count: number; readonly until: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async of(points: TenantPoints, collection: string): Promise<number> {
    const place = `${collection} ${points.tenant}`;
    const kept = this.#kept.get(place);
    if (kept !== undefined && kept.until > this.#now()) return kept.count;
    this.#kept.delete(place);
    const count = await points.countWorded(collection);
    if (count >= WordedCounts.#MANY) this.#kept.set(place, { count, until: this.#now() + WordedCounts.#KEPT_MS });
    return count;
  }
}

export interface SearchDeps {
  readonly points: TenantPoints;
  readonly names: CollectionNames;
  readonly vectors: PointVectors;
  readonly model: StoreOptions['model'];
  readonly worded: WordedCounts;
  /** The server counts a word among chosen points, and not among all. */
  readonly ownStatistics: boolean;
}

/** Both lists by one request: by vectors, by words, and those by words once more with their vectors; and any that has words. */
export async function searchCandidates(
  deps: SearchDeps,
  layer: MemoryLayer,
  { vector, text, limit }: Pick<StoreQuery, 'vector' | 'text' | 'limit'>,
  must: readonly Condition[],
): Promise<Candidates> {
  if (vector !== null) requireVector(vector, deps.model);
  const dense = denseOf([vector], deps.model);
  const asked = deps.vectors.ofQuery(text);
  if (limit <= 0 || (dense.length === 0 && asked === null)) return { dense: [], words: [] };
  const searches = [
    ...(dense.length === 0 ? [] : [denseSearch(deps, dense, limit)]),
    ...(asked === null ? [] : [wordSearch(deps, asked, limit)]),
    ...(dense.length === 0 || asked === null ? [] : [cosinesOfWords(deps, dense, asked, limit)]),
    ...(asked === null || deps.ownStatistics ? [] : [{ using: WORDS, query: deps.vectors.ofPresence(), limit: 1, payload: [] }]),
  ];
  const collection = deps.names.layers[layer];
  const [{ lists, anchorScore }, worded] = await Promise.all([
    deps.points.search(collection, { must }, searches),
    asked === null || deps.ownStatistics ? 0 : deps.worded.of(deps.points, collection),
  ]);
  const byVector = dense.length === 0 ? [] : (lists.shift() ?? []);
  const byWords = asked === null ? [] : (lists.shift() ?? []).filter(hasWords);
  const ofWords = dense.length === 0 || asked === null ? [] : (lists.shift() ?? []);
  const cosines = new Map([...ofWords, ...byVector].map(({ id, score }) => [id, cosineOf(score)]));
  const surplus = deps.ownStatistics || anchorScore === null ? 0 : surplusOf(anchorScore, lists[0]?.[0]?.score ?? null, worded);
  const bm25s = new Map(byWords.map((point) => [point.id, bm25Of(point, surplus)]));
  const candidateOf = (point: ScoredPoint) => toCandidate(point, cosines.get(point.id) ?? 0, bm25s.get(point.id) ?? 0);
  const words = ordered(byWords.map(candidateOf), ({ bm25 }) => bm25, limit);
  const inWords = new Set(words.map(nameOf));
  const near = ordered(byVector.map(candidateOf), ({ cosine }) => cosine, limit);
  return { words, dense: near.map((candidate) => (inWords.has(nameOf(candidate)) ? candidate : { ...candidate, bm25: 0 })) };
}

function denseSearch({ model }: SearchDeps, query: unknown, limit: number): Search {
  return { using: vectorName(model.name), query, limit: limit + TIES, payload: CANDIDATE };
}

function wordSearch({ ownStatistics }: SearchDeps, query: SparseVector, limit: number): Search {
  const asked = wordLimit(ownStatistics, limit);
  if (ownStatistics) return { using: WORDS, query, limit: asked, payload: CANDIDATE, ownStatistics };
  return { using: WORDS, query, limit: asked, payload: [...CANDIDATE, ...query.indices.map((word) => `w.${weightName(word)}`)] };
}

function cosinesOfWords({ model, ownStatistics }: SearchDeps, query: unknown, words: SparseVector, limit: number): Search {
  const asked = wordLimit(ownStatistics, limit);
  const among = { using: WORDS, query: words, limit: asked };
  return { using: vectorName(model.name), query, limit: asked, payload: [], among, ...(ownStatistics ? { ownStatistics } : {}) };
}

const wordLimit = (ownStatistics: boolean, limit: number) => (ownStatistics ? limit : limit * OVERSAMPLING) + TIES;

/**
 * How much a server that counts records of all tenants gives each word too much.
 *
 * The weight of a word is ln((N + 1) / (df + 1/2)). df is the tenant's, since its words have numbers of their own, and N is
 * that of the collection: so with n records of the tenant every word has ln((N + 1) / (n + 1)) too much, whichever it is. N as
 * the server counts it is seen in the score of the anchor: one point that has a word of its own, so df = 1 and the weight 1.
 *
 * A server counts deleted records until it writes their segment anew, in N and in df. The word that all records of the tenant have
 * shows how many those are, which n has to count too: a word would else be more frequent than there are records. What was written
 * before records had it is in `worded` alone.
 */
function surplusOf(anchorScore: number, presenceScore: number | null, worded: number): number {
  const all = anchorScore + Math.log(1.5);
  const counted = presenceScore === null ? 0 : Math.round(Math.exp(all - presenceScore) - 0.5);
  return all - Math.log(Math.max(worded, counted) + 1);
}

/** Before 1.19 a point may keep words of a text that was replaced by one without any. */
function hasWords({ payload }: ScoredPoint): boolean {
  return payload['worded'] !== false;
}

function bm25Of({ score, payload }: ScoredPoint, surplus: number): number {
  const weights = Object.values((payload['w'] as Readonly<Record<string, number>> | undefined) ?? {});
  return Math.max(BM25_MIN, rounded(score - surplus * weights.reduce((sum, weight) => sum + weight, 0)));
}

function cosineOf(score: number): number {
  return Math.max(-1, Math.min(1, rounded(score)));
}

function rounded(value: number): number {
  return Math.round(value * PRECISION) / PRECISION;
}

function toCandidate({ payload }: ScoredPoint, cosine: number, bm25: number): Candidate {
  return {
    kind: payload['kind'] as RecordKind,
    key: decodeText(String(payload['key'])),
    createdAt: Number(payload['created_at']),
    worth: Number(payload['worth']),
    cosine,
    bm25,
  };
}

function nameOf({ kind, key }: Candidate): string {
  return `${kind} ${key}`;
}

function ordered(candidates: Candidate[], valueOf: (candidate: Candidate) => number, limit: number): Candidate[] {
  return candidates
    .toSorted((a, b) => valueOf(b) - valueOf(a) || b.createdAt - a.createdAt || compareCodePoints(a.key, b.key))
    .slice(0, limit);
}
