import type { ProceduralMemory } from '@etude/domain/ports/memory';
import type { PlainRecord } from '@etude/memory/memory';
import { type AskedSkills, skillNamed } from '../skills/skill-access.js';

const SKILL_ID = /^(?:skills\/)?([a-z][a-z0-9_]{0,79})(?:@([1-9][0-9]{0,8}))?$/;

/**
 * A skill by the id of its hit, or by its name for the newest version; whose it may be is decided as for `GetSkill`.
 * null where the id is none of a skill.
 *
 * @throws EtudeError NOT_FOUND; FAILED_PRECONDITION where a reviewer names no user, and several have one
 */
export async function skillAsRecord(procedural: ProceduralMemory, asked: AskedSkills, id: string): Promise<PlainRecord | null> {
  const [, name, version] = SKILL_ID.exec(id) ?? [];
  if (name === undefined) return null;
  const skill = await skillNamed(procedural, asked, `skills/${name}`, Number(version ?? 0));
  const { scope, createdAt } = skill;
  return { id: `${skill.name}@${skill.version}`, layer: 'procedural', kind: 'skill', scope, createdAt, fields: { ...skill } };
}
