import type { Candidate, RecordKind, RecordStore, StoredRecord, StoreQuery } from '../record-store.js';
import { nameOf, newestFirst } from '../record-store.js';
import type { LayerQuery } from '../memory.js';
import { ARCHIVED, embedTexts, type LayerDeps, parseBody } from './records.js';
import { rerank, rerankedMax } from './rerank.js';
import type { Turn } from '@etude/contracts/conversation';
import type { Fact } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { EmbedderProfile } from '@etude/domain/ports/model';
import { type MemoryHit, type ReadScope, requireScope } from '@etude/domain/ports/memory';
import { namesSpeaker, speakerOf } from '@etude/domain/recall/turn-text';
import { SCRIPTED_SOURCE, searchableText } from '@etude/domain/retrieval/entries';
import { comparedWith, fusedScore, isRelevant, SIMILARITY_RELEVANT, sumOf } from '@etude/domain/retrieval/fuse';
import { queryWordsOf, STOP_WORDS, wordsOf } from '@etude/domain/retrieval/words';

/** A search result with its score. `docs/memory.md` describes the names in `explanation`. */
export interface RankedRecord {
  readonly record: StoredRecord;
  readonly similarity: number;
  readonly score: number;
  readonly explanation: Readonly<Record<string, number>>;
  /** See `MemoryHit`. Filled at the end of a search. */
  readonly why?: readonly string[];
}

export type Ranked = Omit<RankedRecord, 'record'> & { readonly candidate: Candidate };

const CANDIDATES_MIN = 24;
const CANDIDATES_PER_HIT = 4;
/** Number of facts to read beyond the limit, since a newer fact may have to come before an older fact within the limit. */
const NEWER_MAX = 12;
/** Turns are loaded up to this multiple of the wanted hits, because a speaker named in the query moves turns up. */
const TURN_RANKS = 3;

/**
 * The best records of a layer for a query, by meaning and by words. All filters are applied before the limit.
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
  const hits = query.rerank ? Math.max(query.limit, rerankedMax(deps)) : query.limit;
  const newer = layer === 'semantic' ? NEWER_MAX : 0;
  const wanted = hits + newer;
  const limit = Math.max(CANDIDATES_MIN, hits * CANDIDATES_PER_HIT);
  const candidates = await candidatesOf(deps.store, scope, layer, storeQuery(query, asked?.vector ?? null, limit), query.archived);
  const ranked = onePerRollout(rankCandidates(candidates, deps.embedder.profile, deps.clock.now(), query.similarityMin ?? 0));
  const looked = ranked.slice(0, wanted * TURN_RANKS).filter(({ candidate }, place) => place < wanted || candidate.kind === 'turn');
  const loaded = await loadRanked(deps.store, scope, layer, looked, query.archived === true);
  const found = query.relevantOnly ? loaded.filter(relevantTo(query.text)) : loaded;
  const settled = newerFirst(namedSpeakersFirst(query.text, found).slice(0, wanted));
  const best = query.rerank ? await rerank(deps, query.text, settled) : settled;
  return query.explain ? withReasons(best, deps.embedder.profile).slice(0, query.limit) : best.slice(0, query.limit);
}

/** Keeps only the best attempt of each rollout, since its attempts are nearly alike. */
function onePerRollout(ranked: readonly Ranked[]): readonly Ranked[] {
  const seen = new Set<string>();
  return ranked.filter(({ candidate: { kind, key } }) => {
    if (kind !== 'transition') return true;
    const rollout = key.replace(/\.a\d+$/, '');
    return !seen.has(rollout) && seen.add(rollout);
  });
}

/** Lowest similarity of a relevant turn. Lower than for other records, since a remark resembles a question less than a statement does. */
const SIMILARITY_OF_TURN = 0.15;

/** Tells whether a hit is relevant: near in meaning, with rare words in common, or with every word of the query. */
function relevantTo(query: string): (hit: RankedRecord) => boolean {
  const asked = queryWordsOf(query).filter(({ text }) => !STOP_WORDS.has(text));
  return ({ similarity, explanation, record }) => {
    const least = record.kind === 'turn' ? SIMILARITY_OF_TURN : SIMILARITY_RELEVANT;
    if (isRelevant({ similarity, explanation }, least)) return true;
    if (asked.length === 0) return record.text.includes(query.trim());
    const words = new Set(wordsOf(`${record.title}\n${record.text}`).map(({ text }) => text));
    return asked.every(({ text }) => words.has(text));
  };
}

function withReasons(found: readonly RankedRecord[], profile: EmbedderProfile): readonly RankedRecord[] {
  const weightOf = ({ record }: RankedRecord) => denseWeightOf(record.kind, profile);
  return found.map((one, at) => {
    const next = found[at + 1];
    const place = 'unsettled' in one.explanation ? ['It is newer than a fact that it may replace, so it comes first.'] : [];
    const compared = next === undefined ? [] : [comparedWith(one.explanation, next.explanation, [weightOf(one), weightOf(next)])];
    return { ...one, why: [sumOf(one.explanation, weightOf(one)), ...place, ...compared] };
  });
}

/** Factor for the score of a turn, if the query names another speaker. Measured in docs/retrieval.md. */
const OTHER_SPEAKER = 0.87;

/** If the query names one of the speakers, lowers turns of other speakers, since people mostly answer questions about themselves. */
function namedSpeakersFirst(text: string, found: readonly RankedRecord[]): readonly RankedRecord[] {
  const turns = new Map(found.flatMap((one) => (one.record.kind === 'turn' ? [[one, parseBody<Turn>(one.record).value] as const] : [])));
  const named = new Set([...turns.values()].filter((turn) => namesSpeaker(text, turn)).map(speakerOf));
  if (named.size !== 1) return found;
  const lowered = found.map((one) => {
    const turn = turns.get(one);
    if (turn === undefined || named.has(speakerOf(turn))) return one;
    const score = one.score * OTHER_SPEAKER;
    return { ...one, score, explanation: { ...one.explanation, speaker: OTHER_SPEAKER, score } };
  });
  return lowered.toSorted((a, b) => b.score - a.score);
}

/** No fact loses more places to newer facts. So a query with the words of an older fact still finds it among the first five. */
const PLACES_LOST_MAX = 3;

/** Moves each unsettled fact before the older facts that it may replace, and gives it the score of the first of these. */
function newerFirst(found: readonly RankedRecord[]): readonly RankedRecord[] {
  const ranked = [...found];
  const lost = new Map<RankedRecord, number>();
  for (const one of found) {
    if (one.record.fields.status !== 'unsettled') continue;
    const near = parseBody<Fact>(one.record).value.unsettled ?? [];
    const from = ranked.indexOf(one);
    const to = ranked.slice(0, from).findIndex((hit) => hit.record.kind === 'fact' && near.includes(hit.record.key));
    const passed = to < 0 ? [] : ranked.slice(to, from);
    if (passed.length === 0 || passed.some((hit) => lost.get(hit) === PLACES_LOST_MAX)) continue;
    for (const hit of passed) lost.set(hit, (lost.get(hit) ?? 0) + 1);
    const { score } = passed[0]!;
    ranked.splice(from, 1);
    ranked.splice(to, 0, { ...one, score, explanation: { ...one.explanation, unsettled: 1 } });
  }
  return ranked;
}

export function hitOf({ record, similarity, score, explanation, why = [] }: RankedRecord, query: LayerQuery): MemoryHit {
  const { layer, kind, title, text, sources, createdAt } = record;
  const { agent, user } = record.scope;
  const written = { ...(user === null ? {} : { user }), ...(isScripted(record) ? { scripted: true } : {}) };
  const hit = { id: idOf(record), layer, kind, title, text, agent, ...written, createdAt, sources, similarity, score };
  return query.explain || 'rerankFailed' in explanation ? { ...hit, explanation, why } : hit;
}

/** Whether the scripted model made the record. Parses only bodies that contain a mark of that model, since a body can have several MiB. */
function isScripted(record: StoredRecord): boolean {
  if (!record.body.includes('"scripted":true') && !record.body.includes(SCRIPTED_SOURCE)) return false;
  const { scripted, source } = parseBody<{ readonly scripted?: boolean; readonly source?: string }>(record).value;
  return scripted === true || source === SCRIPTED_SOURCE;
}

/** The public id of a record, unique within its layer and kind. */
export function idOf({ fields, key }: Pick<StoredRecord, 'fields' | 'key'>): string {
  return typeof fields.id === 'string' ? fields.id : key;
}

function storeQuery({ text, kinds, worthMin, category }: LayerQuery, vector: StoreQuery['vector'], limit: number) {
  const where = category === undefined ? {} : { category };
  return { text: searchableText(text), vector, limit, kinds, worthMin, where } satisfies StoreQuery;
}

/** Weight of vectors for turns. Many turns resemble a question, so words count more. Measured in docs/retrieval.md. */
const DENSE_SHARE_OF_TURN = 0.75;

const denseWeightOf = (kind: RecordKind, { denseWeight }: EmbedderProfile) => (kind === 'turn' ? DENSE_SHARE_OF_TURN : 1) * denseWeight;

/** Ranks candidates, best first. Drops candidates that have neither a word nor any similarity in common with the query. */
export function rankCandidates(
  candidates: readonly Candidate[],
  profile: EmbedderProfile,
  now: number,
  similarityMin = 0,
): readonly Ranked[] {
  const calibrate = (raw: number) => profile.calibrate(raw);
  const ranked = candidates.map((candidate) => {
    const { kind, cosine, bm25, worth } = candidate;
    const similarity = calibrate(cosine);
    const { fused, recency, score } = fusedScore(candidate, { denseWeight: denseWeightOf(kind, profile), calibrate, now });
    return { candidate, similarity, score, explanation: { similarity, cosine, bm25, fused, recency, worth, score } };
  });
  return ranked
    .filter(({ similarity, candidate }) => similarity >= similarityMin && (similarity > 0 || candidate.bm25 > 0))
    .toSorted((a, b) => b.score - a.score || b.similarity - a.similarity || newestFirst(a.candidate, b.candidate));
}

/** Loads the ranked records in their order. Leaves out records that were removed or hidden since the search. */
async function loadRanked(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  ranked: readonly Ranked[],
  archived: boolean,
): Promise<readonly RankedRecord[]> {
  const kinds = Map.groupBy(ranked, ({ candidate }) => candidate.kind);
  const keysOf = (ofKind: readonly Ranked[]) => ofKind.map(({ candidate }) => candidate.key);
  const loaded = await Promise.all([...kinds].map(([kind, ofKind]) => store.load(scope, layer, kind, keysOf(ofKind))));
  const byName = new Map(loaded.flat().map((record) => [nameOf(record), record]));
  return ranked.flatMap(({ candidate, ...placed }) => {
    const record = byName.get(nameOf(candidate));
    return record !== undefined && (record.shown || archived) ? [{ record, ...placed }] : [];
  });
}

/** Candidates that search shows. With `archived`, also candidates that forgetting has hidden. */
async function candidatesOf(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  query: StoreQuery,
  archived = false,
): Promise<readonly Candidate[]> {
  const shown = store.search(scope, layer, query);
  if (!archived) return shown;
  const where = { ...query.where, ...ARCHIVED };
  return (await Promise.all([shown, store.search(scope, layer, { ...query, where, shown: false })])).flat();
}
