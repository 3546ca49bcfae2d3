import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '../ports/memory.js';

const PAGE = 200;

/** The newest version of every skill in a status, page by page. */
export async function everyListed(procedural: Pick<ProceduralMemory, 'list'>, owner: ReadScope, status?: SkillStatus): Promise<Skill[]> {
  const skills: Skill[] = [];
  for (;;) {
    const last = skills.at(-1);
    const after = last === undefined ? {} : { afterName: last.name, afterAgent: last.scope.agent, afterUser: last.scope.user };
    const page = await procedural.list(owner, { limit: PAGE, ...(status === undefined ? {} : { status }), ...after });
    skills.push(...page);
    if (page.length < PAGE) return skills;
  }
}
