import { approximateTokens } from '../model-answer.js';
import { isRetryable } from '@etude/contracts/errors';
import type { FoundItem, Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/evaluator.js';
import type { EpisodicMemory, MemoryHit, ProceduralMemory, ReadScope, SearchQuery, SemanticMemory, ShowCounters } from '../ports/memory.js';
import { keepsItsPlace, offerScore } from '../lift/effects.js';
import { taskIdOf, taskName } from '@etude/contracts/ids';
import { fenced, withoutCode } from '../retrieval/entries.js';
import { wordsOf } from '../retrieval/words.js';
import { episodeKey } from '../trust/sources.js';
import { isRelevant } from '../retrieval/fuse.js';
import { shownText } from './turn-text.js';

export interface SearchedMemory {
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search'>;
  readonly procedural: Pick<ProceduralMemory, 'search'>;
}

export interface RecollectDeps extends SearchedMemory {
  /** If absent, the order doesn't depend on how much items helped before. */
  readonly counters?: ShowCounters;
}

export interface RecollectInput {
  readonly scope: ReadScope;
  readonly cue: string;
  /** The most memories of each layer. In the result, the layers take turns in the order of these keys. */
  readonly counts: Readonly<Partial<Record<MemoryLayer, number>>>;
  readonly tokensMax: number;
  /** A memory with a lower calibrated similarity is kept only if it shares rare words (BM25). Default: `SIMILARITY_RELEVANT`. */
  readonly similarityMin?: number;
  /** Whether to go on without a layer that can't be searched now. */
  readonly partial?: boolean;
  readonly leaveOut?: (hit: MemoryHit) => boolean;
  /** Whether to leave out attempts from which a shown skill was made. Attempt and skill hold the same code. */
  readonly skillsForAttempts?: boolean;
}

export interface Recollected {
  /** The best hits first. Long texts are cut. */
  readonly hits: readonly MemoryHit[];
  readonly skills: readonly Skill[];
  readonly tokens: number;
  readonly missing: readonly MemoryLayer[];
  /** Whether hits were found, but none of them is related to the cue. */
  readonly unrelated: boolean;
}

interface Candidate extends MemoryHit {
  readonly skill?: Skill;
}

const CUE_CHARS_MAX = 6_000;
/** The default limit is low, because every model call of a rollout pays for recalled texts. */
export const RECALL_TOKENS = 800;
const PROSE_CHARS_MAX = 1_200;
/** An item that is longer with its code is shown without the code, because a part of a function would mislead. */
const CODE_ITEM_CHARS_MAX = 2_800;
/** Two experiences with this share of common words count as the same lesson. */
const SAME_LESSON = 0.8;
/** Twice as many candidates are searched for as returned, so that other candidates can replace duplicates. */
const CANDIDATES_PER_ITEM = 2;
/** Twice as many skills are searched for as wanted, because some of them are no longer offered. */
const SKILLS_PER_CANDIDATE = 2;

/**
 * Finds the best memories of each layer for a cue. Each is relevant by meaning or by rare words, and teaches another lesson. Facts come first,
 * because they are short. Then the layers take turns. Last come episodes from which a found skill was made. Code is shown whole or not at all.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE and any error of the embedder, unless `partial`
 */
export async function recollect(input: RecollectInput, deps: RecollectDeps): Promise<Recollected> {
  const layers = Object.entries(input.counts).filter(([, count]) => count > 0) as Array<[MemoryLayer, number]>;
  const missing: MemoryLayer[] = [];
  const found = await Promise.all(
    layers.map(async ([layer, count]) => {
      try {
        return await searchLayer(layer, count, input, deps);
      } catch (error) {
        if (!input.partial || !isRetryable(error)) throw error;
        missing.push(layer);
        return [];
      }
    }),
  );
  const related = found.map((hits) => hits.filter((hit) => isRelevant(hit, input.similarityMin)));
  const kept = related.map((hits) => hits.filter((hit) => !input.leaveOut?.(hit)));
  return { ...withinBudget(inTurns(kept), input), missing, unrelated: found.flat().length > 0 && related.flat().length === 0 };
}

async function searchLayer(
  layer: MemoryLayer,
  count: number,
  { scope, cue }: RecollectInput,
  { episodic, semantic, procedural, counters }: RecollectDeps,
): Promise<readonly Candidate[]> {
  const limit = count * CANDIDATES_PER_ITEM;
  const query: SearchQuery = { text: cutMiddle(cue, CUE_CHARS_MAX), limit, explain: true };
  if (layer !== 'procedural') return inOfferOrder(await { episodic, semantic }[layer].search(scope, query), scope, counters);
  const found = await procedural.search(scope, { ...query, limit: limit * SKILLS_PER_CANDIDATE });
  const skills = found.map(({ skill, ...match }) => ({ ...skillHit(skill), ...match, skill }));
  return (await inOfferOrder(skills, scope, counters)).slice(0, limit);
}

/** The hits, sorted by `offerScore`. Skills that were offered too often without being used are left out. */
async function inOfferOrder(found: readonly Candidate[], { tenant }: ReadScope, counters?: ShowCounters): Promise<readonly Candidate[]> {
  const known = found.length === 0 ? [] : ((await counters?.counters(tenant, found.map(foundItem))) ?? []);
  const scored = found.flatMap(({ skill, ...hit }, at): Candidate[] => {
    const shows = known[at] ?? null;
    const score = offerScore(hit.score, skill ?? null, shows);
    if (skill === undefined) return [{ ...hit, score }];
    return keepsItsPlace(skill, shows) ? [{ ...hit, skill, score }] : [];
  });
  return scored.toSorted((a, b) => b.score - a.score);
}

export function foundItem({ layer, kind, id, agent, user }: MemoryHit): FoundItem {
  return { layer, kind, id, owner: { agent, user: user ?? null } };
}

export function skillHit({ name, version, description, code, scope: { agent, user }, scripted, updatedAt, sources }: Skill) {
  const text = [description, fenced(code)].filter((part) => part.trim() !== '').join('\n\n');
  const shown = { id: `${name}@${version}`, layer: 'procedural', kind: 'skill', title: name, text } as const;
  return { ...shown, agent, ...(user === null ? {} : { user }), scripted, createdAt: updatedAt, sources };
}

function inTurns(layers: ReadonlyArray<readonly Candidate[]>): Candidate[] {
  const turns = Math.max(0, ...layers.map((hits) => hits.length));
  const all = Array.from({ length: turns }, (_, turn) => layers.flatMap((hits) => hits.slice(turn, turn + 1))).flat();
  const facts = all.filter(({ kind }) => kind === 'fact');
  const isSpare = (hit: Candidate) => all.some((other) => cameFrom(other, hit) || isNoteOf(hit, other));
  const others = all.filter(({ kind }) => kind !== 'fact');
  return [...facts, ...others.filter((hit) => !isSpare(hit)), ...others.filter(isSpare)];
}

function withinBudget(
  candidates: readonly Candidate[],
  { counts, tokensMax, skillsForAttempts = false }: RecollectInput,
): Omit<Recollected, 'missing' | 'unrelated'> {
  const isCompared = ({ kind }: MemoryHit) => kind !== 'transition' || skillsForAttempts;
  const hits: MemoryHit[] = [];
  const skills: Skill[] = [];
  const seen = new Set<string>();
  let tokens = 0;
  for (const { explanation: _, why: _why, skill, ...hit } of candidates) {
    const sized = formsOf(hit).map((text) => ({ text, tokens: approximateTokens(shownText({ ...hit, text })) }));
    const fitting = sized.find((form) => tokens + form.tokens <= tokensMax);
    const isFull = hits.filter(({ layer }) => layer === hit.layer).length >= (counts[hit.layer] ?? 0);
    const names = [nameOf(hit), contentOf(hit)];
    const isAlike =
      names.some((name) => seen.has(name)) ||
      hits.some((other) => (isCompared(hit) && cameFrom(other, hit)) || teachesSame(other, hit) || tellsFact(hit, other));
    if (isFull || isAlike || fitting === undefined) continue;
    for (const name of [...names, ...shownWith(hit)]) seen.add(name);
    tokens += fitting.tokens;
    hits.push({ ...hit, text: fitting.text });
    if (skill) skills.push(skill);
  }
  return { hits, skills, tokens };
}

function formsOf({ text }: MemoryHit): readonly string[] {
  const prose = withoutCode(text);
  if (prose === text) return [cutMiddle(text, PROSE_CHARS_MAX)];
  const whole = text.length <= CODE_ITEM_CHARS_MAX ? [text] : [];
  return prose === '' ? whole : [...whole, cutMiddle(prose, PROSE_CHARS_MAX)];
}

/** Whether two experiences come from one rollout or share nearly all words. Facts are not compared, because they may differ only in a number. */
function teachesSame(a: MemoryHit, b: MemoryHit): boolean {
  if (a.layer === 'episodic' && b.layer === 'episodic' && episodeKey(a.id) === episodeKey(b.id)) return true;
  if (!isExperience(a) || !isExperience(b)) return false;
  const [one, other] = [lessonWords(a), lessonWords(b)];
  const common = [...one].filter((word) => other.has(word)).length;
  return common >= SAME_LESSON * (one.size + other.size - common);
}

const tellsFact = (note: MemoryHit, { kind, text }: MemoryHit) => kind === 'fact' && NOTES.has(note.kind) && note.text.includes(text);

const isExperience = ({ layer, kind }: MemoryHit) => layer === 'episodic' || NOTES.has(kind);

const lessonWords = ({ text }: MemoryHit) => new Set(wordsOf(withoutCode(text)).map((word) => word.text));

/** The key of a record. An episode and its notes have the same key, because the episode contains their texts. */
function nameOf({ kind, id, layer, agent }: MemoryHit): string {
  const what = NOTES.has(kind) ? 'episode' : kind;
  return JSON.stringify(layer === 'procedural' ? [what, id, agent] : [what, id]);
}

/** The keys of the turns that are shown around a turn. These turns need no hit of their own. */
function shownWith({ before = [], after = [], ...hit }: MemoryHit): readonly string[] {
  return [...before, ...after].map(({ id }) => nameOf({ ...hit, id }));
}

function contentOf(hit: MemoryHit): string {
  return shownText(hit).replaceAll(/\s+/g, ' ').trim();
}

const NOTES: ReadonlySet<string> = new Set(['summary', 'reflection']);

function isNoteOf(note: MemoryHit, { kind, id }: MemoryHit): boolean {
  return NOTES.has(note.kind) && kind === 'episode' && note.id === id;
}

/** Whether a skill was made from an experience. Then the skill is enough, because it holds the same answer, verified. */
function cameFrom(skill: MemoryHit, { kind, id, sources }: MemoryHit): boolean {
  if (skill.layer !== 'procedural' || (kind !== 'episode' && kind !== 'summary' && kind !== 'transition')) return false;
  return [id, ...sources].some((source) => skill.sources.includes(source) || skill.sources.includes(taskName(taskIdOf(source))));
}
