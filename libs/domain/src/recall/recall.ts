import type { RecalledItem } from '@etude/contracts/memory';
import type { MemoryLayer, MemoryPolicy } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/cut-middle.js';
import type { EpisodicMemory, ProceduralMemory, ReadScope, SearchQuery, SemanticMemory } from '../ports/memory.js';

export interface RecallDeps {
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search'>;
  readonly procedural: Pick<ProceduralMemory, 'search'>;
}

export interface RecallInput {
  readonly scope: ReadScope;
  readonly cue: string;
  readonly policy: Pick<MemoryPolicy, 'recallCount' | 'layers' | 'off'>;
  /** What this rollout itself left behind is no memory of another task. */
  readonly rolloutId: string;
}

/** About 2,000 tokens in all: enough for a few solutions, small beside any context window. */
const CHARS_MAX = 8_000;
const ITEM_CHARS_MAX = 2_400;
const CUE_CHARS_MAX = 6_000;

export function recallsNothing({ off, recallCount, layers }: RecallInput['policy']): boolean {
  return off || recallCount === 0 || layers.length === 0;
}

/**
 * The best memories of each layer for a cue, no two alike, within a budget of characters.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE: without memory the rollout would solve another task than was asked for
 */
export async function recall(input: RecallInput, deps: RecallDeps): Promise<RecalledItem[]> {
  if (recallsNothing(input.policy)) return [];
  const layers = [...new Set(input.policy.layers)];
  const query: SearchQuery = { text: cutMiddle(input.cue, CUE_CHARS_MAX), limit: input.policy.recallCount };
  const found = await Promise.all(layers.map((layer) => searchLayer(layer, input.scope, query, deps)));
  const foreign = found.map((items) => items.filter((item) => !item.id.startsWith(input.rolloutId)));
  return withinBudget(foreign);
}

async function searchLayer(layer: MemoryLayer, scope: ReadScope, query: SearchQuery, deps: RecallDeps): Promise<RecalledItem[]> {
  if (layer === 'episodic') return (await deps.episodic.search(scope, query)).map(plainItem);
  if (layer === 'semantic') return (await deps.semantic.search(scope, query)).map(plainItem);
  const skills = await deps.procedural.search(scope, query);
  return skills.map(({ skill, score, similarity }) => ({
    id: `${skill.name}@${skill.version}`,
    layer,
    kind: 'skill',
    title: skill.name,
    text: `${skill.description}\n\n${skill.code}`,
    score,
    similarity,
  }));
}

/** A hit without what only searches show. */
function plainItem({ id, layer, kind, title, text, score, similarity }: RecalledItem): RecalledItem {
  return { id, layer, kind, title, text, score, similarity };
}

/** One of each layer in turn, best first, so that no layer starves another. */
function withinBudget(layers: readonly RecalledItem[][]): RecalledItem[] {
  const taken: RecalledItem[] = [];
  const seen = new Set<string>();
  let left = CHARS_MAX;
  const ranks = Math.max(0, ...layers.map((items) => items.length));
  for (let rank = 0; rank < ranks; rank += 1) {
    for (const item of layers.flatMap((items) => items.slice(rank, rank + 1))) {
      const text = cutMiddle(item.text, ITEM_CHARS_MAX);
      const content = item.text.replaceAll(/\s+/g, ' ').trim();
      if (seen.has(item.id) || seen.has(content) || text.length > left) continue;
      seen.add(item.id).add(content);
      left -= text.length;
      taken.push({ ...item, text });
    }
  }
  return taken;
}
