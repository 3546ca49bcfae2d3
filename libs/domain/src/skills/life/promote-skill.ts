import { EtudeError } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import { SKILL_SCOPES, type SkillDependency, type SkillScope } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../../ports/memory.js';
import { PROMOTED_MARK } from './marks.js';
import { sourceOf } from '../../trust/sources.js';
import { ownerOf, ownersFor, scopeOf } from './find-skill.js';
import { CALLABLE, type Decision, isProofOf } from './skill-life.js';

/** The copy starts without cues, fingerprints and counts, which belong to the earlier readers. */
const ANEW = { cues: [], fingerprints: [], executionCount: 0, successRate: 1 } satisfies Partial<Skill>;

/**
 * Stores a copy of a skill for more readers, as a candidate. The copy is verified anew, because the old evidence may name skills that the
 * new readers can't see. Then it waits for review. A repeated call finds the copy.
 *
 * @param decision.namesMax how many skills the new owner may have; 0: any number
 * @throws EtudeError INVALID_ARGUMENT for a scope that isn't wider; FAILED_PRECONDITION for a skill that is not in use, has no proof for
 *   its content, or calls a skill that the new readers can't see, and where they have no room
 */
export async function promoteSkill(
  procedural: ProceduralMemory,
  skill: Skill,
  { scope, namesMax = 0, ...decision }: Decision & { readonly scope: SkillScope; readonly namesMax?: number },
): Promise<Skill> {
  const now = scopeOf(skill);
  if (SKILL_SCOPES.indexOf(scope) <= SKILL_SCOPES.indexOf(now)) {
    const shared = `skill "${skill.name}" is shared with ${now} already; choose a wider scope`;
    throw new EtudeError('INVALID_ARGUMENT', shared, { field: 'scope' });
  }
  if (skill.status !== 'active' || !isProofOf(skill, skill.proof))
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `Skill "${skill.name}" is ${skill.status}${skill.proof === undefined ? ' and has no proof' : ''}; only an active skill with a proof for its content can be shared.`,
      { field: 'name' },
    );
  const owner = ownerOf(scope, skill.scope);
  const needed = await Promise.all((skill.dependencies ?? []).map((one) => readablePin(procedural, one, owner)));
  // A global copy names no users: other tenants must not read these names, and global skills are never revoked by user.
  const sources = skill.sources.filter((name) => scope !== 'global' || sourceOf(name)?.kind !== 'users');
  const untrusted = [...new Set([...(skill.untrusted ?? []), PROMOTED_MARK])];
  const { by, reason, at } = decision;
  const statusReason = `shared by ${by}${reason === '' ? '' : `: ${reason}`}`;
  const anew = { ...ANEW, sources, untrusted, statusReason, scope: owner, createdAt: at, updatedAt: at };
  const copy = { ...skill, ...anew, ...(needed.length === 0 ? {} : { dependencies: needed }) };
  return procedural.store(copy, { by, isReviewed: true, words: 'kept', namesMax });
}

/** A pin of the same content under an owner whose skills the new readers see. The proof still holds, because it covers content. */
async function readablePin(procedural: ProceduralMemory, pin: SkillDependency, owner: Scope): Promise<SkillDependency> {
  for (const view of ownersFor(owner)) {
    const versions = await procedural.versions(view, pin.name);
    const same = versions.find(({ digest, status }) => digest === pin.digest && CALLABLE.has(status));
    if (same !== undefined) return { ...pin, ...view, version: same.version };
  }
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `the skill calls "${pin.name}" version ${pin.version} of "${pin.agent}", which the new readers can't see; share and approve that skill first`,
    { field: 'scope' },
  );
}
