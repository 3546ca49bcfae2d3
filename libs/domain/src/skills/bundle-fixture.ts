import { Skill } from '@etude/contracts/memory';
import { dependencyOn } from './bundle-code.js';
import { skillDigest } from './skill-candidate.js';

const scope = { tenant: 'acme', agent: 'solver', user: null };

/** An active skill of a test; its entry point is its name. */
export function skillOf(name: string, code: string, over: Partial<Skill> & { readonly needs?: readonly Skill[] } = {}): Skill {
  const { needs = [], ...more } = over;
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
    ...(needs.length === 0 ? {} : { dependencies: needs.map(dependencyOn) }),
    ...more,
  });
  return { ...skill, digest: over.digest ?? skillDigest(skill) };
}

/** Skills as a registry would give them. */
export function registryOf(...skills: readonly Skill[]) {
  return {
    versions: async ({ tenant, agent }: { tenant: string; agent: string }, name: string) =>
      skills
        .filter((skill) => skill.name === name && skill.scope.tenant === tenant && skill.scope.agent === agent)
        .toSorted((a, b) => b.version - a.version),
  };
}
