import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { StoreSkillOptions } from '../../ports/memory.js';
import { withMarks } from './untrusted.js';

/** Of versions that nobody goes on from, unless somebody says so. */
const GONE: ReadonlySet<SkillStatus> = new Set(['rejected', 'archived']);

/**
 * The skill with the marks of its owner's versions before it: of all that are not rejected or archived, of the one that was edited,
 * and of each that has the same code but for comments and blank lines. An edit makes nothing trusted, whoever approved what was edited;
 * a reviewer who stores a version vouches for all that is in it.
 *
 * @param versions all of this name that the agent has
 */
export function withCarriedMarks(skill: Skill, versions: readonly Skill[], { baseVersion, isReviewed = false }: StoreSkillOptions): Skill {
  if (isReviewed) return skill;
  const code = bareCode(skill);
  const before = versions.filter(
    (version) =>
      version.scope.user === skill.scope.user &&
      (!GONE.has(version.status) || version.version === baseVersion || bareCode(version) === code),
  );
  const untrusted = [...new Set([skill, ...before].flatMap((version) => withMarks(version).untrusted ?? []))];
  return untrusted.length === 0 ? skill : { ...skill, untrusted };
}

/** Two texts with the same strings may look alike here, too, where they hold a "#": one mark too many, never one too few. */
function bareCode({ code }: Skill): string {
  const lines = code.split(/\r?\n/).map((line) => line.replace(/#.*$/, '').trimEnd());
  return lines.filter((line) => line !== '').join('\n');
}
