import type { ReadScope } from '@etude/domain/ports/memory';
import { recollect } from '@etude/domain/recall/recollect';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { FoundSkill } from '@etude/domain/skills/life/find-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import type { Memory, RecallRequest, Recollection } from '../memory.js';
import { readableSkills } from './readable-skills.js';

const FACTS = 5;
const EXPERIENCES = 3;
const PROCEDURES = 3;
const TOKENS_MAX = 2_000;
/** A summary stands for its episode, and that is an experience. */
const KNOWLEDGE = ['fact', 'chunk', 'reflection'] as const;

/**
 * One call over all layers; see `Memory.recall`. Skills are those that the reader may use: its own and what is shared with it, and without a
 * user only what is nobody's in particular. What an agent is shown of them was offered to it.
 */
export async function recallMemory(
  { episodic, semantic, procedural }: Pick<Memory, 'episodic' | 'semantic' | 'procedural'>,
  scope: ReadScope,
  request: RecallRequest,
  { partial = false }: { readonly partial?: boolean } = {},
): Promise<Recollection> {
  requireScope(scope);
  const { context: cue, facts = FACTS, experiences = EXPERIENCES, procedures = PROCEDURES, tokensMax = TOKENS_MAX } = request;
  const knowledge: typeof semantic.search = (within, query) => semantic.search(within, { ...query, kinds: KNOWLEDGE });
  const counts = { semantic: facts, episodic: experiences, procedural: procedures };
  const found: FoundSkill[] = [];
  const skills: typeof procedural.search = async (within, query) => {
    found.push(...(await readableSkills(procedural, within, query)));
    return found;
  };
  const layers = { episodic, semantic: { search: knowledge }, procedural: { search: skills } };
  const floor = request.similarityMin === undefined ? {} : { similarityMin: request.similarityMin };
  const { hits, tokens, missing } = await recollect({ scope, cue, counts, tokensMax, partial, ...floor }, layers);
  const of = (layer: keyof typeof counts) => hits.filter((hit) => hit.layer === layer);
  const shown = of('procedural');
  const offered = found.filter(({ skill }) =>
    shown.some(({ id, agent }) => id === `${skill.name}@${skill.version}` && agent === skill.scope.agent),
  );
  if (scope.agent !== null && offered.length > 0) await procedural.countOffers(offered.map(({ skill }) => keyOf(skill)));
  return { facts: of('semantic'), experiences: of('episodic'), procedures: shown, tokens, missing };
}
