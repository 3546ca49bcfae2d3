import type { LayerQuery, Memory, ProceduralLayer, RecallRequest, Recollection } from '../memory.js';
import { GLOBAL_TENANT, TENANT_AGENT } from '@etude/contracts/ids';
import type { ReadScope } from '@etude/domain/ports/memory';
import { RECALL_TOKENS, recollect } from '@etude/domain/recall/recollect';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { type FoundSkill, searchSkills, viewOf } from '@etude/domain/skills/life/find-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';

const FACTS = 5;
const EXPERIENCES = 3;
const PROCEDURES = 3;
/** Summaries aren't included: they stand for episodes, which are recalled as experiences. */
const KNOWLEDGE = ['fact', 'chunk', 'turn', 'reflection'] as const;

/**
 * Recalls from all layers; see `Memory.recall`. Skills are those that `readableSkills` finds. If an agent reads, each returned
 * skill counts one offer.
 */
export async function recallMemory(
  { episodic, semantic, procedural }: Pick<Memory, 'episodic' | 'semantic' | 'procedural'>,
  scope: ReadScope,
  request: RecallRequest,
  { partial = false }: { readonly partial?: boolean } = {},
): Promise<Recollection> {
  requireScope(scope);
  const { context: cue, facts = FACTS, experiences = EXPERIENCES, procedures = PROCEDURES, tokensMax = RECALL_TOKENS } = request;
  const knowledge: typeof semantic.search = (within, query) => semantic.search(within, { ...query, kinds: KNOWLEDGE });
  const counts = { semantic: facts, episodic: experiences, procedural: procedures };
  const search: typeof procedural.search = (within, query) => readableSkills(procedural, within, query);
  const layers = { episodic, semantic: { search: knowledge }, procedural: { search } };
  const floor = request.similarityMin === undefined ? {} : { similarityMin: request.similarityMin };
  const { hits, skills, tokens, missing } = await recollect({ scope, cue, counts, tokensMax, partial, ...floor }, layers);
  const of = (layer: keyof typeof counts) => hits.filter((hit) => hit.layer === layer);
  if (scope.agent !== null && skills.length > 0) await procedural.countOffers(skills.map(keyOf));
  return { facts: of('semantic'), experiences: of('episodic'), procedures: of('procedural'), tokens, missing };
}

/**
 * The skills that a reader may use, best first: its own, the user's, and those shared with the tenant or with everybody. A scope without an
 * agent covers the skills of all agents of the tenant and the global ones. Without a user, only skills that belong to no user.
 */
export async function readableSkills(
  procedural: Pick<ProceduralLayer, 'search'>,
  scope: ReadScope,
  query: LayerQuery,
): Promise<readonly FoundSkill[]> {
  const { tenant, agent, user = null } = scope;
  if (agent !== null) return searchSkills(procedural, { tenant, agent, user }, query);
  const everyAgents = { ...viewOf({ tenant, agent: '' }, user), agent: null };
  const everybodys = viewOf({ tenant: GLOBAL_TENANT, agent: TENANT_AGENT }, null);
  const found = await Promise.all([everyAgents, everybodys].map((view) => procedural.search(view, query)));
  return found
    .flat()
    .toSorted((a, b) => b.score - a.score)
    .slice(0, query.limit);
}
