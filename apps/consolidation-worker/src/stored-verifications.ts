import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillVerifications } from '@etude/domain/consolidation/consolidate';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { settledStatus } from '@etude/domain/skills/proof/admit-skill';
import { waitUntil } from './wait-until.js';

/** What became of proposed skills, read from memory, where `skill.verify` writes it; waits at most `waitMs` for all of them together. */
export class StoredVerifications implements SkillVerifications {
  constructor(
    private readonly procedural: ProceduralMemory,
    private readonly waitMs: number,
  ) {}

  async settled(_tenant: string, skills: readonly Skill[], signal: AbortSignal): Promise<readonly SkillStatus[]> {
    let statuses: SkillStatus[] = [];
    const look = async () => {
      const found = await Promise.all(skills.map((skill) => settledStatus(this.procedural, skill)));
      statuses = found.filter((status) => status !== null);
      return statuses.length === skills.length;
    };
    await waitUntil(look, this.waitMs, signal);
    return statuses;
  }
}
