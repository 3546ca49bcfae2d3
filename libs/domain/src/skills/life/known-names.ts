import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../../ports/memory.js';
import { isReadBy, ownersFor, type SkillReader, viewOf } from './owners.js';

const PAGE = 200;
/** Of one owner, by name: who has more is helped with the first of them. */
const NAMES_MAX = 2_000;

/** Names of the skills of a status that a reader sees, to find the one that was probably meant. @throws EtudeError MEMORY_UNAVAILABLE */
export async function knownNames(
  procedural: Pick<ProceduralMemory, 'list'>,
  reader: SkillReader,
  status: SkillStatus,
): Promise<readonly string[]> {
  const names = new Set<string>();
  const owners = new Map(ownersFor(reader).map(({ tenant, agent }) => [`${tenant} ${agent}`, { tenant, agent }]));
  for (const owner of owners.values()) {
    let last: Skill | undefined;
    for (let seen = 0; seen < NAMES_MAX;) {
      const after = last === undefined ? {} : { afterName: last.name, afterAgent: last.scope.agent, afterUser: last.scope.user };
      const page = await procedural.list(viewOf(owner, reader.user), { limit: PAGE, status, ...after });
      for (const { name, scope } of page) if (isReadBy(scope, reader)) names.add(name);
      last = page.at(-1);
      seen += PAGE;
      if (page.length < PAGE) break;
    }
  }
  return [...names];
}
