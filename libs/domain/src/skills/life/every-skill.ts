import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory, ReadScope } from '../../ports/memory.js';
import type { SkillRegistry } from '../../ports/skill-registry.js';

export type SkillShelf = Pick<ProceduralMemory, 'list'> & Pick<SkillRegistry, 'versions'>;

const PAGE = 200;

/** Every version of every skill of a tenant, or of one of its owners; whoever the user is. */
export async function everySkill(shelf: SkillShelf, { tenant, agent }: Pick<ReadScope, 'tenant' | 'agent'>): Promise<readonly Skill[]> {
  const all: Skill[] = [];
  let last: Skill | undefined;
  for (;;) {
    const after = last === undefined ? {} : { afterName: last.name, afterAgent: last.scope.agent, afterUser: last.scope.user };
    const page = await shelf.list({ tenant, agent }, { limit: PAGE, ...after });
    for (const newest of page) all.push(...(newest.version === 1 ? [newest] : await shelf.versions(newest.scope, newest.name)));
    last = page.at(-1);
    if (page.length < PAGE) return all;
  }
}

/** Tells versions of one tenant apart. */
export const versionKey = ({ name, version, scope }: Pick<Skill, 'name' | 'version' | 'scope'>) =>
  `${scope.tenant} ${scope.agent} ${scope.user ?? ''} ${name}@${version}`;

/** Of a skill, the versions that its code calls: where a pin does not say whose, nobody's and its own user's. */
export function calledVersions({ scope, dependencies = [] }: Pick<Skill, 'scope' | 'dependencies'>): string[] {
  return dependencies.flatMap(({ name, version, tenant, agent, user }) => {
    const users = user === undefined ? [null, scope.user] : [user];
    return [...new Set(users)].map((one) => versionKey({ name, version, scope: { tenant, agent, user: one } }));
  });
}

/** Callers before what they call, so that nothing is ever called that is not there. */
export function callersFirst(skills: readonly Skill[]): Skill[] {
  const left = new Map(skills.map((skill) => [versionKey(skill), skill]));
  const ordered: Skill[] = [];
  while (left.size > 0) {
    const called = new Set([...left.values()].flatMap(calledVersions));
    const free = [...left].filter(([key]) => !called.has(key));
    // Only a cycle leaves none, and there is none among verified skills.
    for (const [key, skill] of free.length > 0 ? free : [...left]) {
      ordered.push(skill);
      left.delete(key);
    }
  }
  return ordered;
}
