import type { MemoryLayer } from '@etude/contracts/task';
import { candidateLists, type Candidates, type RecordKind, type StoreOptions, type StoreQuery } from '../record-store.js';
import { type CollectionNames, vectorName, WORDS } from './collections.js';
import { decodeText } from './record-points.js';
import { countedIn, denseOf, type PointVectors, type SparseVector, surplusOf, weightName } from './point-vectors.js';
import type { Conditions, ScoredPoint, Search, TenantPoints } from './tenant-points.js';

const CANDIDATE = ['kind', 'key', 'created_at', 'worth', 'worded'];
/** Extra results to ask for, because equal values are ordered here. */
const TIES = 16;
/** How many times more candidates by words to ask for: the server's word weights count the records of all tenants. */
const OVERSAMPLING = 2;
/** Scores are rounded to millionths, since vectors have single precision. */
const PRECISION = 1e6;
/** Lowest score of a record found by words, since 0 means that the words didn't find it. */
const BM25_MIN = 1e-6;

export interface SearchDeps {
  readonly points: TenantPoints;
  readonly names: CollectionNames;
  readonly vectors: PointVectors;
  readonly model: StoreOptions['model'];
}

/** Fetches both lists in one request. It has three searches: by vector, by words, and by words again for their cosines. */
export async function searchCandidates(
  deps: SearchDeps,
  layer: MemoryLayer,
  { vector, text, limit }: Pick<StoreQuery, 'vector' | 'text' | 'limit'>,
  must: Conditions,
): Promise<Candidates> {
  const dense = denseOf([vector], deps.model);
  const asked = deps.vectors.ofQuery(text);
  if (limit <= 0 || (dense.length === 0 && asked === null)) return { dense: [], words: [] };
  const searches = [
    ...(dense.length === 0 ? [] : [denseSearch(deps, dense, limit)]),
    ...(asked === null ? [] : [wordSearch(asked, limit)]),
    ...(dense.length === 0 || asked === null ? [] : [cosinesOfWords(deps, dense, asked, limit)]),
  ];
  const presence = { using: WORDS, query: deps.vectors.ofPresence(), limit: 1, payload: [] };
  const { lists, anchorScore } = await deps.points.search(deps.names.layers[layer], must, [...searches, presence]);
  const presenceScore = lists.pop()?.[0]?.score ?? 0;
  const surplus = anchorScore === null ? 0 : surplusOf(anchorScore, countedIn(anchorScore, presenceScore));
  const byVector = dense.length === 0 ? [] : (lists.shift() ?? []);
  const byWords = asked === null ? [] : (lists.shift() ?? []).filter(hasWords);
  const ofWords = dense.length === 0 || asked === null ? [] : (lists.shift() ?? []);
  const cosines = new Map([...ofWords, ...byVector].map(({ id, score }) => [id, cosineOf(score)]));
  const bm25s = new Map(byWords.map((point) => [point.id, bm25Of(point, surplus)]));
  const records = new Map([...byWords, ...byVector].map((point) => [point.id, rankedPart(point)]));
  const near = byVector.map(({ id }) => id);
  return candidateLists({ records, near, bm25s, cosineOf: (id) => cosines.get(id) ?? 0 }, limit);
}

function denseSearch({ model }: SearchDeps, query: unknown, limit: number): Search {
  return { using: vectorName(model.name), query, limit: limit + TIES, payload: CANDIDATE };
}

function wordSearch(query: SparseVector, limit: number): Search {
  const payload = [...CANDIDATE, ...query.indices.map((word) => `w.${weightName(word)}`)];
  return { using: WORDS, query, limit: wordLimit(limit), payload };
}

function cosinesOfWords({ model }: SearchDeps, query: unknown, words: SparseVector, limit: number): Search {
  const among = { using: WORDS, query: words, limit: wordLimit(limit) };
  return { using: vectorName(model.name), query, limit: wordLimit(limit), payload: [], among };
}

const wordLimit = (limit: number) => limit * OVERSAMPLING + TIES;

/** Before Qdrant 1.19 a point may keep stale words after a replacement by a text without words. */
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

function rankedPart({ payload }: ScoredPoint) {
  return {
    kind: payload['kind'] as RecordKind,
    key: decodeText(String(payload['key'])),
    createdAt: Number(payload['created_at']),
    worth: Number(payload['worth']),
  };
}
