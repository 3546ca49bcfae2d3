import { isRetryable } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/evaluator.js';
import type { EpisodicMemory, MemoryHit, ProceduralMemory, ReadScope, SearchQuery, SemanticMemory } from '../ports/memory.js';
import { taskIdOf, taskName } from '@etude/contracts/ids';
import { isRelevant } from '../retrieval/fuse.js';
import { shownText } from './turn-text.js';

export interface RecollectDeps {
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search'>;
  readonly procedural: Pick<ProceduralMemory, 'search'>;
}

export interface RecollectInput {
  readonly scope: ReadScope;
  readonly cue: string;
  /** How many memories of each layer at most. The layers take turns in this order. */
  readonly counts: Readonly<Partial<Record<MemoryLayer, number>>>;
  /** Limit for all texts together. */
  readonly tokensMax: number;
  /** Below this calibrated similarity, only rare words in common (BM25) keep a memory; default `SIMILARITY_RELEVANT`. */
  readonly similarityMin?: number;
  /** Continue without a layer that can't be searched now. */
  readonly partial?: boolean;
  readonly leaveOut?: (hit: MemoryHit) => boolean;
}

export interface Recollected {
  /** Best first. Long texts are cut. */
  readonly hits: readonly MemoryHit[];
  readonly skills: readonly Skill[];
  readonly tokens: number;
  readonly missing: readonly MemoryLayer[];
}

interface Candidate extends MemoryHit {
  readonly skill?: Skill;
}

const CUE_CHARS_MAX = 6_000;
const ITEM_CHARS_MAX = 2_400;
/** More are searched than returned, so that others can replace duplicates. */
const CANDIDATES_PER_ITEM = 2;

/** Rough number of tokens of a text: one for every four characters, as in English prose. */
export const approximateTokens = (text: string) => Math.ceil(text.length / 4);

/**
 * Finds the best memories of each layer for a cue. They must be relevant by meaning or by words that few other texts have. No two are
 * alike, and all fit within a budget of tokens. Layers take turns, so that none starves another. An episode that a found skill was made
 * from comes after all others.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE and any error of the embedder, unless `partial`
 */
export async function recollect(input: RecollectInput, deps: RecollectDeps): Promise<Recollected> {
  const layers = Object.entries(input.counts).filter(([, count]) => count > 0) as Array<[MemoryLayer, number]>;
  const missing: MemoryLayer[] = [];
  const found = await Promise.all(
    layers.map(async ([layer, count]) => {
      try {
        return (await searchLayer(layer, count, input, deps)).filter(
          (hit) => isRelevant(hit, input.similarityMin) && !input.leaveOut?.(hit),
        );
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

export function skillHit({ name, version, description, code, scope: { agent, user }, scripted, updatedAt, sources }: Skill) {
  const text = [description, code].filter((part) => part.trim() !== '').join('\n\n');
  const shown = { id: `${name}@${version}`, layer: 'procedural', kind: 'skill', title: name, text } as const;
  return { ...shown, agent, ...(user === null ? {} : { user }), scripted, createdAt: updatedAt, sources };
}

function inTurns(layers: ReadonlyArray<readonly Candidate[]>): Candidate[] {
  const turns = Math.max(0, ...layers.map((hits) => hits.length));
  const all = Array.from({ length: turns }, (_, turn) => layers.flatMap((hits) => hits.slice(turn, turn + 1))).flat();
  const isSpare = (hit: Candidate) => all.some((other) => cameFrom(other, hit) || isNoteOf(hit, other));
  return [...all.filter((hit) => !isSpare(hit)), ...all.filter(isSpare)];
}

function withinBudget(candidates: readonly Candidate[], { counts, tokensMax }: RecollectInput): Omit<Recollected, 'missing'> {
  const hits: MemoryHit[] = [];
  const skills: Skill[] = [];
  const seen = new Set<string>();
  let tokens = 0;
  for (const { explanation: _, why: _why, skill, ...hit } of candidates) {
    const text = cutMiddle(hit.text, ITEM_CHARS_MAX);
    const itsTokens = approximateTokens(shownText({ ...hit, text }));
    const isFull = hits.filter(({ layer }) => layer === hit.layer).length >= (counts[hit.layer] ?? 0);
    const names = [nameOf(hit), contentOf(hit)];
    const isAlike = names.some((name) => seen.has(name)) || hits.some((other) => cameFrom(other, hit));
    if (isFull || isAlike || tokens + itsTokens > tokensMax) continue;
    for (const name of [...names, ...shownWith(hit)]) seen.add(name);
    tokens += itsTokens;
    hits.push({ ...hit, text });
    if (skill) skills.push(skill);
  }
  return { hits, skills, tokens };
}

/** The same name for one record, and for an episode and its notes, whose texts it has. */
function nameOf({ kind, id, layer, agent }: MemoryHit): string {
  const what = NOTES.has(kind) ? 'episode' : kind;
  return JSON.stringify(layer === 'procedural' ? [what, id, agent] : [what, id]);
}

/** The names of the turns that are shown around a turn, which need no hit of their own. */
function shownWith({ before = [], after = [], ...hit }: MemoryHit): readonly string[] {
  return [...before, ...after].map(({ id }) => nameOf({ ...hit, id }));
}

/** What is shown of it, without differences in white space. */
function contentOf(hit: MemoryHit): string {
  return shownText(hit).replaceAll(/\s+/g, ' ').trim();
}

const NOTES: ReadonlySet<string> = new Set(['summary', 'reflection']);

function isNoteOf(note: MemoryHit, { kind, id }: MemoryHit): boolean {
  return NOTES.has(note.kind) && kind === 'episode' && note.id === id;
}

/** Whether a skill was made from an episode. The skill holds the same answer, verified, so one of the two suffices. */
function cameFrom(skill: MemoryHit, { kind, id, sources }: MemoryHit): boolean {
  if (skill.layer !== 'procedural' || (kind !== 'episode' && kind !== 'summary')) return false;
  return [id, ...sources].some((source) => skill.sources.includes(source) || skill.sources.includes(taskName(taskIdOf(source))));
}
