import type { Skill } from '@etude/contracts/memory';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { isPruning } from '../life/prune.js';
import { isPinOf } from '../life/call-graph.js';

/** Versions, and their tests together, that a new version is held to beside the one that it replaces. */
const VERSIONS_MAX = 20;
const TESTS_MAX = 1_000;

/**
 * The versions whose tests this one had to pass, by its evidence, those that they had to pass, and so on back, newest first. One that
 * was archived by a decision binds nobody any more; pruning is none. Without a proof there is nothing to go by.
 *
 * @param skill in use; its own tests are not among them
 * @throws EtudeError MEMORY_UNAVAILABLE
 */
export async function earlierVersions(skill: Skill, registry: Pick<SkillRegistry, 'versions'>): Promise<readonly Skill[]> {
  if (keptOf(skill).length === 0) return [];
  const versions = new Map((await registry.versions(skill.scope, skill.name)).map((version) => [version.version, version]));
  const found = new Map<number, Skill>();
  for (let open = keptOf(skill); open.length > 0;) {
    const next = open.flatMap(({ version, digest }) => {
      const one = versions.get(version);
      return one === undefined || one.digest !== digest || one.version === skill.version || found.has(version) ? [] : [one];
    });
    for (const one of next) found.set(one.version, one);
    open = next.flatMap(keptOf);
  }
  const binding = [...found.values()].filter((one) => !isWithdrawn(one)).toSorted((a, b) => b.version - a.version);
  return withinBounds(binding);
}

/** Its own versions, of those whose tests passed with it. */
function keptOf(skill: Skill) {
  return (skill.proof?.kept ?? []).filter((pin) => isPinOf(pin, skill));
}

function isWithdrawn({ status, history = [] }: Skill): boolean {
  return status === 'archived' && !isPruning(history.findLast(({ to }) => to === 'archived')?.reason ?? '');
}

function withinBounds(versions: readonly Skill[]): readonly Skill[] {
  let tests = 0;
  return versions.slice(0, VERSIONS_MAX).filter((version) => (tests += version.tests.length) <= TESTS_MAX);
}
