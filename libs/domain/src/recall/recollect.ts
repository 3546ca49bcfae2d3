import { isRetryable } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
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
  /** Those among them that are skills. */
  readonly skills: readonly Skill[];
  readonly tokens: number;
  readonly missing: readonly MemoryLayer[];
}

interface Candidate extends MemoryHit {
  readonly skill?: Skill;
}

const CUE_CHARS_MAX = 6_000;
const ITEM_CHARS_MAX = 2_400;
/** What is alike is left out; then the next best take its place. */
const CANDIDATES_PER_ITEM = 2;
/** What 95 of 100 pairs that have nothing to do with each other stay below, with any embedder. */
const SIMILARITY_RELEVANT = 0.3;
/** What 95 of 100 of the five best texts for an unrelated question stay below, in a memory of a hundred texts; see docs/retrieval.md. */
const BM25_TELLING = 9;

/** About how many tokens a text has: four characters each, as in English prose. */
export const approximateTokens = (text: string) => Math.ceil(text.length / 4);

/**
 * The best memories of each layer for a cue, as far as they have to do with it, by meaning or by words that hardly any other text has; no
 * two alike, within a budget of tokens. One of each layer in turn, so that none starves another; an episode that a skill of the same
 * answer came from waits until all others had their turn.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE and what embedding throws, unless `partial`
 */
export async function recollect(input: RecollectInput, deps: RecollectDeps): Promise<Recollected> {
  const { similarityMin = SIMILARITY_RELEVANT } = input;
  const isRelevant = ({ similarity, explanation }: MemoryHit) =>
    similarity >= similarityMin || (explanation?.['bm25'] ?? 0) >= BM25_TELLING;
  const layers = Object.entries(input.counts).filter(([, count]) => count > 0) as Array<[MemoryLayer, number]>;
  const missing: MemoryLayer[] = [];
  const found = await Promise.all(
    layers.map(async ([layer, count]) => {
      try {
        return (await searchLayer(layer, count, input, deps)).filter((hit) => isRelevant(hit) && !input.leaveOut?.(hit));
      } catch (error) {
        if (!input.partial || !isRetryable(error)) throw error;
        missing.push(layer);
        return [];
      }
    }),
  );
  return { ...withinBudget(inTurns(found), input), missing };
}

async function searchLayer(
  layer: MemoryLayer,
  count: number,
  { scope, cue }: RecollectInput,
  { episodic, semantic, procedural }: RecollectDeps,
): Promise<readonly Candidate[]> {
  const query: SearchQuery = { text: cutMiddle(cue, CUE_CHARS_MAX), limit: count * CANDIDATES_PER_ITEM, explain: true };
  if (layer === 'episodic') return episodic.search(scope, query);
  if (layer === 'semantic') return semantic.search(scope, query);
  return (await procedural.search(scope, query)).map(({ skill, ...match }) => ({ ...skillHit(skill), ...match, skill }));
}

function skillHit({ name, version, description, code, scope: { agent, user }, scripted, updatedAt, sources }: Skill) {
  const text = [description, code].filter((part) => part.trim() !== '').join('\n\n');
  const shown = { id: `${name}@${version}`, layer: 'procedural', kind: 'skill', title: name, text } as const;
  return { ...shown, agent, ...(user === null ? {} : { user }), scripted, createdAt: updatedAt, sources };
}

function inTurns(layers: ReadonlyArray<readonly Candidate[]>): Candidate[] {
  const turns = Math.max(0, ...layers.map((hits) => hits.length));
  const all = Array.from({ length: turns }, (_, turn) => layers.flatMap((hits) => hits.slice(turn, turn + 1))).flat();
  const isSpare = (hit: Candidate) => all.some((skill) => cameFrom(skill, hit));
  return [...all.filter((hit) => !isSpare(hit)), ...all.filter(isSpare)];
}

function withinBudget(candidates: readonly Candidate[], { counts, tokensMax }: RecollectInput): Omit<Recollected, 'missing'> {
  const hits: MemoryHit[] = [];
  const skills: Skill[] = [];
  const seen = new Set<string>();
  let tokens = 0;
  for (const { explanation: _, skill, ...hit } of candidates) {
    const text = cutMiddle(hit.text, ITEM_CHARS_MAX);
    const isFull = hits.filter(({ layer }) => layer === hit.layer).length >= (counts[hit.layer] ?? 0);
    const names = [nameOf(hit), contentOf(hit)];
    const isAlike = names.some((name) => seen.has(name)) || hits.some((other) => cameFrom(other, hit));
    if (isFull || isAlike || tokens + approximateTokens(text) > tokensMax) continue;
    for (const name of names) seen.add(name);
    tokens += approximateTokens(text);
    hits.push({ ...hit, text });
    if (skill) skills.push(skill);
  }
  return { hits, skills, tokens };
}

/** Equal for one record, and for the summary of an episode and the episode itself. */
function nameOf({ kind, id, layer, agent }: MemoryHit): string {
  const what = kind === 'summary' ? 'episode' : kind;
  return JSON.stringify(layer === 'procedural' ? [what, id, agent] : [what, id]);
}

/** Equal for texts that differ in white space only. */
function contentOf({ text }: MemoryHit): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Whether a skill was made of an episode: it has its answer, verified, so that one of the two suffices. */
function cameFrom(skill: MemoryHit, { kind, id, sources }: MemoryHit): boolean {
  if (skill.layer !== 'procedural' || (kind !== 'episode' && kind !== 'summary')) return false;
  return [id, ...sources].some((source) => skill.sources.includes(source) || skill.sources.includes(taskName(taskIdOf(source))));
}
