import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';
import { nearestOf } from '../use/nearest-name.js';
import { activeVersions, type Decision, moveOf } from './approve.js';
import { findSkill } from './find-skill.js';
import { knownNames } from './known-names.js';
import { isProofOf, wasActive, wasBefore } from './skill-life.js';

/**
 * Not used any more; `replacedBy` is found in its place.
 *
 * @throws EtudeError INVALID_ARGUMENT for itself; NOT_FOUND where whoever reads this skill can use no active one of that name: so no
 *   chain of replacements leads back, since what is deprecated takes nobody's place
 */
export async function deprecateSkill(
  procedural: Pick<ProceduralMemory, 'versions' | 'move' | 'list'>,
  skill: Skill,
  { replacedBy, ...decision }: Decision & { readonly replacedBy?: string },
): Promise<Skill> {
  if (replacedBy === skill.name)
    throw new EtudeError('INVALID_ARGUMENT', `skill "${skill.name}" can't take its own place; name another one`, { field: 'replaced_by' });
  if (replacedBy !== undefined) await requireReplacement(procedural, skill, replacedBy);
  const named = replacedBy === undefined ? {} : { replacedBy };
  const [moved] = await procedural.move([moveOf(skill, { ...decision, to: 'deprecated', from: ['active', 'deprecated'], ...named })]);
  return moved ?? skill;
}

async function requireReplacement(procedural: Pick<ProceduralMemory, 'versions' | 'list'>, { scope, name }: Skill, other: string) {
  if ((await findSkill(procedural, scope, other, { status: 'active' })) !== null) return;
  const names = (await knownNames(procedural, scope, 'active')).filter((known) => known !== name && known !== other);
  const nearest = nearestOf(other, names);
  throw new EtudeError(
    'NOT_FOUND',
    `there is no active skill "${other}" that everybody who reads "${name}" can use${nearest === null ? '' : `; did you mean "${nearest}"?`}`,
    { field: 'replaced_by' },
  );
}

/**
 * Out of sight, all or none of these versions of one owner's skill.
 *
 * @throws EtudeError FAILED_PRECONDITION where another skill, active or waiting for review, calls one of them, at any depth: it could not
 *   run any more
 */
export async function archiveSkill(
  procedural: Pick<SkillRegistry, 'move'>,
  versions: readonly Skill[],
  decision: Decision,
): Promise<readonly Skill[]> {
  return procedural.move(versions.map((skill) => moveOf(skill, { ...decision, to: 'archived' })));
}

/**
 * Undoes archiving: each version is again what it was. What was active, or waited for review, is so only with a proof for its content
 * and, to be active, where no other version took its place; else it is deprecated where it was used once, or a candidate, which has to
 * be verified again.
 *
 * @param versions archived ones of one owner's skill
 * @param decision.namesMax how many skills its owner may have; 0: any number
 * @throws EtudeError ABORTED for what is not archived; FAILED_PRECONDITION where it calls what is archived, and would be in use again, and
 *   where its owner has as many as they may
 */
export async function restoreSkill(
  procedural: SkillRegistry,
  versions: readonly Skill[],
  { namesMax = 0, ...decision }: Decision & { readonly namesMax?: number },
): Promise<readonly Skill[]> {
  const moves: SkillMove[] = [];
  let isFree: boolean | null = null;
  for (const skill of versions.toSorted((a, b) => b.version - a.version)) {
    if (skill.status !== 'archived')
      throw new EtudeError('ABORTED', `Skill "${skill.name}" is ${skill.status}; only what was archived can be restored.`, {
        field: 'name',
      });
    isFree ??= (await activeVersions(procedural, skill)).length === 0;
    const to = restoredStatus(skill, isFree);
    if (to === 'active') isFree = false;
    moves.push(moveOf(skill, { ...decision, to, from: ['archived'] }));
  }
  return procedural.move(moves, { namesMax });
}

function restoredStatus(skill: Skill, isFree: boolean): SkillStatus {
  const before = wasBefore(skill);
  const isUsable = isProofOf(skill, skill.proof) || skill.kind === 'procedure';
  if (before === 'rejected') return before;
  if ((before === 'active' && isFree && isUsable) || (before === 'pending_review' && isProofOf(skill, skill.proof))) return before;
  return wasActive(skill) || before === 'deprecated' || before === 'active' ? 'deprecated' : 'candidate';
}

/** Those that were archived with the last that was: one decision is undone, and not those before it. */
export function archivedLast(versions: readonly Skill[]): readonly Skill[] {
  const archived = versions.filter(({ status }) => status === 'archived');
  const last = Math.max(...archived.map(archivedAt));
  return archived.filter((skill) => archivedAt(skill) === last);
}

/** ms since 1970 */
function archivedAt({ history = [] }: Skill): number {
  return history.findLast(({ from, to }) => to === 'archived' && from !== 'archived')?.at ?? 0;
}
