import { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { skillDigest } from '../src/skills/content-digest.js';

const scope = { tenant: 'acme', agent: 'solver', user: null };

export interface SkillGiven extends Partial<Skill> {
  readonly needs?: readonly Skill[];
}

/** An active skill of a test; its entry point is its name. */
export function skillOf(name: string, code: string, { needs = [], ...more }: SkillGiven = {}): Skill {
  const skill = Skill.parse({
    name,
    version: 1,
    scope,
    kind: 'function',
    description: `Does what ${name} does.`,
    code,
    entryPoint: name,
    tests: [],
    cues: [],
    fingerprints: [],
    status: 'active',
    digest: '',
    sources: [],
    model: null,
    scripted: false,
    createdAt: 1,
    updatedAt: 1,
    ...(needs.length === 0 ? {} : { dependencies: needs.map((need) => dependencyOn(need)) }),
    ...more,
  });
  return { ...skill, digest: more.digest ?? skillDigest(skill) };
}

/** Skills as a registry would give them. */
export function registryOf(...skills: readonly Skill[]): Pick<ProceduralMemory, 'versions'> {
  const versions: ProceduralMemory['versions'] = async ({ tenant, agent, user }, name, status?: SkillStatus) =>
    skills
      .filter((skill) => skill.name === name && skill.scope.tenant === tenant && skill.scope.agent === agent)
      .filter((skill) => user === undefined || skill.scope.user === user)
      .filter((skill) => status === undefined || skill.status === status)
      .toSorted((a, b) => b.version - a.version);
  return { versions };
}
