import { isRetryable } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/evaluator.js';
import type { EpisodicMemory, MemoryHit, ProceduralMemory, ReadScope, SearchQuery, SemanticMemory } from '../ports/memory.js';
import { taskIdOf, taskName } from '@etude/contracts/ids';

export interface RecollectDeps {
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search'>;
  readonly procedural: Pick<ProceduralMemory, 'search'>;
}

export interface RecollectInput {
  readonly scope: ReadScope;
  readonly cue: string;
  /** How many of each layer at most, in the order in which the layers take turns. */
  readonly counts: Readonly<Partial<Record<MemoryLayer, number>>>;
  /** Of all texts together. */
  readonly tokensMax: number;
  /** Calibrated similarity below which only telling words keep a memory; default `SIMILARITY_RELEVANT`. */
  readonly similarityMin?: number;
  /** Go on without a layer that cannot be searched now. */
  readonly partial?: boolean;
  readonly leaveOut?: (hit: MemoryHit) => boolean;
}

export interface Recollected {
  /** Best first; texts are cut where they are long. */
  readonly hits: readonly MemoryHit[];
  readonly tokens: number;
  readonly missing: readonly MemoryLayer[];
}

const CUE_CHARS_MAX = 6_000;
const ITEM_CHARS_MAX = 2_400;
/** What is alike is left out; then the next best take its place. */
const CANDIDATES_PER_ITEM = 2;

/** About how many tokens a text has: four characters each, as in English prose. */
export const approximateTokens = (text: string) => Math.ceil(text.length / 4);

/**
 * The best memories of each layer for a cue, as far as they have to do with it, no two alike, within a budget of tokens. One of each layer in turn, so that none
 * starves another; an episode that a skill of the same answer came from waits until all others had their turn.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE and what embedding throws, unless `partial`
 */
export async function recollect(input: RecollectInput, deps: RecollectDeps): Promise<Recollected> {
  const layers = Object.entries(input.counts).filter(([, count]) => count > 0) as Array<[MemoryLayer, number]>;
  const searched = await Promise.allSettled(layers.map(([layer, count]) => searchLayer(layer, count, input, deps)));
  const missing: MemoryLayer[] = [];
  const { similarityMin = SIMILARITY_RELEVANT } = input;
  const found = searched.map((search, i) => {
    if (search.status === 'fulfilled') return search.value.filter((hit) => isRelevant(hit, similarityMin) && !input.leaveOut?.(hit));
    if (!input.partial || !isRetryable(search.reason)) throw search.reason;
    missing.push(...layers.slice(i, i + 1).map(([layer]) => layer));
    return [];
  });
  return { ...withinBudget(inTurns(found), input), missing };
}

async function searchLayer(
  layer: MemoryLayer,
  count: number,
  { scope, cue }: RecollectInput,
  { episodic, semantic, procedural }: RecollectDeps,
): Promise<readonly MemoryHit[]> {
  const query: SearchQuery = { text: cutMiddle(cue, CUE_CHARS_MAX), limit: count * CANDIDATES_PER_ITEM, explain: true };
  if (layer === 'episodic') return episodic.search(scope, query);
  if (layer === 'semantic') return semantic.search(scope, query);
  return (await procedural.search(scope, query)).map(skillHit);
}

function skillHit({ skill, score, similarity, explanation }: Awaited<ReturnType<ProceduralMemory['search']>>[number]): MemoryHit {
  const { name, version, description, code, scope, scripted, updatedAt, sources } = skill;
  const text = [description, code].filter((part) => part.trim() !== '').join('\n\n');
  const shown = { id: `${name}@${version}`, layer: 'procedural', kind: 'skill', title: name, text } as const;
  const whose = { agent: scope.agent, ...(scope.user === null ? {} : { user: scope.user }) };
  const hit = { ...shown, score, similarity, ...whose, scripted, createdAt: updatedAt, sources };
  return explanation === undefined ? hit : { ...hit, explanation };
}

function inTurns(layers: ReadonlyArray<readonly MemoryHit[]>): MemoryHit[] {
  const turns = Math.max(0, ...layers.map((hits) => hits.length));
  const all = Array.from({ length: turns }, (_, turn) => layers.flatMap((hits) => hits.slice(turn, turn + 1))).flat();
  const skills = all.filter(({ layer }) => layer === 'procedural');
  const isSpare = (hit: MemoryHit) => skills.some((skill) => cameFrom(skill, hit));
  return [...all.filter((hit) => !isSpare(hit)), ...all.filter(isSpare)];
}

function withinBudget(candidates: readonly MemoryHit[], { counts, tokensMax }: RecollectInput): { hits: MemoryHit[]; tokens: number } {
  const hits: MemoryHit[] = [];
  const seen = new Set<string>();
  let tokens = 0;
  for (const { explanation: _, ...hit } of candidates) {
    const text = cutMiddle(hit.text, ITEM_CHARS_MAX);
    const isFull = hits.filter(({ layer }) => layer === hit.layer).length >= (counts[hit.layer] ?? 0);
    const isAlike = seen.has(nameOf(hit)) || seen.has(contentOf(hit)) || hits.some((other) => cameFrom(other, hit));
    if (isFull || isAlike || tokens + approximateTokens(text) > tokensMax) continue;
    seen.add(nameOf(hit)).add(contentOf(hit));
    tokens += approximateTokens(text);
    hits.push({ ...hit, text });
  }
  return { hits, tokens };
}

/** Equal for one record, and for the summary of an episode and the episode itself. */
export function nameOf({ kind, id, layer, agent }: MemoryHit): string {
  const what = kind === 'summary' ? 'episode' : kind;
  return JSON.stringify(layer === 'procedural' ? [what, id, agent] : [what, id]);
}

/** Equal for texts that differ in white space only. */
export function contentOf({ text }: MemoryHit): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Whether a skill was made of an episode: it has its answer, verified, so that one of the two suffices. */
export function cameFrom(skill: MemoryHit, { kind, id, sources }: MemoryHit): boolean {
  if (skill.layer !== 'procedural' || (kind !== 'episode' && kind !== 'summary')) return false;
  return [id, ...sources].some((source) => skill.sources.includes(source) || skill.sources.includes(taskName(taskIdOf(source))));
}

/** What 95 of 100 pairs that have nothing to do with each other stay below, with any embedder. */
export const SIMILARITY_RELEVANT = 0.3;
/** What 95 of 100 of the five best texts for an unrelated question stay below, in a memory of a hundred texts; see docs/retrieval.md. */
const BM25_TELLING = 9;

/** Whether a hit has to do with what was asked: by its meaning, or as it shares words that hardly any other text has. */
export function isRelevant({ similarity, explanation }: Pick<MemoryHit, 'similarity' | 'explanation'>, similarityMin: number): boolean {
  return similarity >= similarityMin || (explanation?.['bm25'] ?? 0) >= BM25_TELLING;
}
