import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import { findSkill, searchSkills, type SkillReader } from '@etude/domain/skills/life/find-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { loadFunctions } from '@etude/domain/skills/proof/load-functions';
import { bundledCode } from '@etude/domain/skills/proof/bundle-code';
import { loadedWith, useSkill } from '@etude/domain/skills/proof/use-skill';
import type { BundledCode, SkillCall, SkillFinder, SkillRunner, SkillUse } from '@etude/domain/tools/tool-ports';
import type { SkillDeps } from '../registration/skill-registration.js';
import { everySkillBehind } from '../skills/list-skills.js';

/** Maximum for listing by category; further skills are found by search. */
const LISTED_MAX = 10_000;

export class MemorySkillFinder implements SkillFinder {
  constructor(private readonly deps: Pick<SkillDeps, 'memory'>) {}

  async search(reader: SkillReader, query: { readonly text: string; readonly limit: number; readonly similarityMin: number }) {
    return searchSkills((await this.deps.memory.open()).procedural, reader, query);
  }

  async find(reader: SkillReader, name: string): Promise<Skill | null> {
    return findSkill((await this.deps.memory.open()).procedural, reader, name);
  }

  async list(reader: SkillReader): Promise<readonly Skill[]> {
    const { procedural } = await this.deps.memory.open();
    const skills: Skill[] = [];
    for await (const skill of everySkillBehind(procedural, { ...reader, everyUser: false }, { status: 'active', tags: [] }, null))
      if (skills.push(skill) >= LISTED_MAX) break;
    return skills;
  }

  async countOffers(skills: readonly Skill[]): Promise<void> {
    if (skills.length > 0) await (await this.deps.memory.open()).procedural.countOffers(skills.map(keyOf));
  }
}

/** Runs proven skills in sandboxes and counts their uses. */
export class ProvenSkillRunner implements SkillRunner {
  constructor(private readonly deps: SkillDeps) {}

  async use(reader: SkillReader, call: SkillCall, signal: AbortSignal): Promise<SkillUse | null> {
    const { procedural } = await this.deps.memory.open();
    const used = await useSkill({ reader, ...call }, { ...this.deps, procedural }, signal);
    return used.outcome === 'not_found' ? null : used;
  }

  async find(reader: SkillReader, names: readonly string[]) {
    const { procedural } = await this.deps.memory.open();
    return loadFunctions(reader, names, { ...this.deps, procedural });
  }

  bundle(reader: SkillReader, pins: readonly SkillDependency[], code: string): Promise<BundledCode> {
    return bundled(reader, pins, code, this.deps);
  }
}

/** The code with these skills in front, and the template that has their packages. @throws EtudeError FAILED_PRECONDITION */
export async function bundled(
  { tenant, agent, user }: SkillReader,
  pins: readonly SkillDependency[],
  code: string,
  { memory, ...deps }: SkillDeps,
): Promise<BundledCode> {
  const { procedural } = await memory.open();
  const caller = { name: 'the code', scope: { tenant, agent, user }, dependencies: [...pins] };
  const { needed, ...place } = await loadedWith(caller, { ...deps, procedural });
  return { code: bundledCode(code, needed, pins), ...place };
}
