import type { MemoryLayer } from '@etude/contracts/task';
import type { EmbedderProfile } from '@etude/domain/ports/embedder';
import type { MemoryHit, ReadScope } from '@etude/domain/ports/memory';
import { SCRIPTED_SOURCE, searchableText } from '@etude/domain/retrieval/entries';
import { fusedScore } from '@etude/domain/retrieval/fuse';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { LayerQuery } from '../memory.js';
import type { Candidate, Candidates, RecordKind, RecordStore, StoredRecord, StoreQuery } from '../record-store.js';
import { candidatesOf } from './archived-candidates.js';
import type { LayerDeps } from './layer-deps.js';
import { rerank, RERANKED_MAX } from './rerank.js';
import { parseBody } from './stored-body.js';
import { embedTexts } from './text-vectors.js';

/** A record that was found, with how it was placed; see `docs/memory.md` for the names in `explanation`. */
export interface RankedRecord {
  readonly record: StoredRecord;
  readonly similarity: number;
  readonly score: number;
  readonly explanation: Readonly<Record<string, number>>;
}

export type Ranked = Omit<RankedRecord, 'record'> & { readonly candidate: Candidate };

interface Place {
  readonly candidate: Candidate;
  readonly rank: number;
  readonly value: number;
}

const CANDIDATES_MIN = 24;
const CANDIDATES_PER_HIT = 4;
/** Vectors are of single precision. */
const TIE = 1e-6;

/**
 * The best records of a layer for a query, by meaning and by words; every narrowing is done before the limit.
 *
 * @throws EtudeError TENANT_MISSING, EMBEDDING_LENGTH_WRONG, MODEL_UNAVAILABLE, MEMORY_UNAVAILABLE
 */
export async function searchLayer(
  deps: LayerDeps,
  scope: ReadScope,
  layer: MemoryLayer,
  query: LayerQuery,
): Promise<readonly RankedRecord[]> {
  requireScope(scope);
  if (!(query.limit > 0)) return [];
  const [asked] = await embedTexts(deps.embedder, [searchableText(query.text)]);
  const wanted = query.rerank ? Math.max(query.limit, RERANKED_MAX) : query.limit;
  const candidates = await candidatesOf(deps.store, scope, layer, storeQuery(query, asked?.vector ?? null, wanted), query.archived);
  const ranked = rankCandidates(candidates, deps.embedder.profile, deps.clock.now(), query.similarityMin ?? 0).slice(0, wanted);
  const found = await loadRanked(deps.store, scope, layer, ranked, query.archived === true);
  const ordered = query.rerank ? await rerank(deps, query.text, found) : found;
  return ordered.slice(0, query.limit);
}

/** What a search answers for a record. */
export function hitOf({ record, similarity, score, explanation }: RankedRecord, query: LayerQuery): MemoryHit {
  const { layer, kind, title, text, sources, createdAt } = record;
  const { agent, user } = record.scope;
  const written = { ...(user === null ? {} : { user }), ...(isScripted(record) ? { scripted: true } : {}) };
  const hit = { id: idOf(record), layer, kind, title, text, agent, ...written, createdAt, sources, similarity, score };
  return query.explain || 'rerankFailed' in explanation ? { ...hit, explanation } : hit;
}

/** Bodies may be of several MiB: those that can't say it are not read. */
function isScripted(record: StoredRecord): boolean {
  if (!record.body.includes('"scripted":true') && !record.body.includes(SCRIPTED_SOURCE)) return false;
  const { scripted, source } = parseBody<{ readonly scripted?: boolean; readonly source?: string }>(record).value;
  return scripted === true || source === SCRIPTED_SOURCE;
}

/** What a record is called outside; within its layer and kind. */
export function idOf({ fields, key }: Pick<StoredRecord, 'fields' | 'key'>): string {
  return typeof fields.id === 'string' ? fields.id : key;
}

function storeQuery({ text, kinds, worthMin, category, createdSince }: LayerQuery, vector: StoreQuery['vector'], wanted: number) {
  return {
    text: searchableText(text),
    vector,
    limit: Math.max(CANDIDATES_MIN, wanted * CANDIDATES_PER_HIT),
    ...(kinds === undefined ? {} : { kinds }),
    ...(worthMin === undefined ? {} : { worthMin }),
    ...(createdSince === undefined ? {} : { createdSince }),
    ...(category === undefined ? {} : { where: { category } }),
  } satisfies StoreQuery;
}

/** Best first. What has neither a word nor any similarity in common with the query is no hit. */
export function rankCandidates({ dense, words }: Candidates, profile: EmbedderProfile, now: number, similarityMin = 0): readonly Ranked[] {
  const byMeaning = placesOf(dense, ({ cosine }) => cosine);
  const byWords = placesOf(words, ({ bm25 }) => bm25);
  return [...new Map([...byWords, ...byMeaning])]
    .map(([name, { candidate }]) => rankedOf(candidate, byMeaning.get(name)?.rank ?? null, byWords.get(name)?.rank ?? null, profile, now))
    .filter(({ similarity, candidate }) => similarity >= similarityMin && (similarity > 0 || candidate.bm25 > 0))
    .toSorted((a, b) => b.score - a.score || b.similarity - a.similarity || newestThenKey(a.candidate, b.candidate));
}

function rankedOf(candidate: Candidate, denseRank: number | null, wordsRank: number | null, profile: EmbedderProfile, now: number): Ranked {
  const { cosine, bm25, createdAt, worth } = candidate;
  const similarity = profile.calibrate(cosine);
  const calibrate = (raw: number) => profile.calibrate(raw);
  const { fused, recency, score } = fusedScore({ cosine, bm25, createdAt, worth }, { denseWeight: profile.denseWeight, calibrate, now });
  const ranks = { ...(denseRank === null ? {} : { denseRank }), ...(wordsRank === null ? {} : { wordsRank }) };
  return { candidate, similarity, score, explanation: { similarity, cosine, bm25, ...ranks, fused, recency, worth, score } };
}

/** Equal values share a rank, so that age and worth decide between them. */
function placesOf(list: readonly Candidate[], valueOf: (candidate: Candidate) => number): Map<string, Place> {
  const places = new Map<string, Place>();
  let last: Place | undefined;
  for (const candidate of list) {
    const value = valueOf(candidate);
    const isTie = last !== undefined && last.value - value < TIE;
    last = { candidate, value, rank: isTie && last ? last.rank : places.size + 1 };
    places.set(nameOf(candidate), last);
  }
  return places;
}

/** In the order of the ranking. What went away, or is not shown any more since it was found, is left out. */
async function loadRanked(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  ranked: readonly Ranked[],
  archived: boolean,
): Promise<readonly RankedRecord[]> {
  const keysByKind = Map.groupBy(ranked, ({ candidate }) => candidate.kind);
  const loaded = await Promise.all([...keysByKind].map(([kind, of]) => loadKind(store, scope, layer, kind, of)));
  const byName = new Map(loaded.flat().map((record) => [nameOf(record), record]));
  return ranked.flatMap(({ candidate, ...placed }) => {
    const record = byName.get(nameOf(candidate));
    return record !== undefined && (record.shown || archived) ? [{ record, ...placed }] : [];
  });
}

function loadKind(store: RecordStore, scope: ReadScope, layer: MemoryLayer, kind: RecordKind, of: readonly Ranked[]) {
  return store.load(
    scope,
    layer,
    kind,
    of.map(({ candidate }) => candidate.key),
  );
}

function nameOf({ kind, key }: Pick<Candidate, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

function newestThenKey(a: Candidate, b: Candidate): number {
  if (a.createdAt !== b.createdAt) return b.createdAt - a.createdAt;
  return a.key < b.key ? -1 : 1;
}
