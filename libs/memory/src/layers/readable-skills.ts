import { GLOBAL_TENANT, TENANT_AGENT } from '@etude/contracts/ids';
import type { ReadScope } from '@etude/domain/ports/memory';
import { type FoundSkill, searchSkills, viewOf } from '@etude/domain/skills/life/find-skill';
import type { LayerQuery, ProceduralLayer } from '../memory.js';

/**
 * Skills that a reader may use, best first: its own, the user's, and what is shared with the tenant and with everybody. Without an agent: of
 * every agent of the tenant, and what is everybody's. Without a user only what is nobody's in particular.
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
