import { EtudeError } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import { SKILL_SCOPES, type SkillDependency, type SkillScope } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../../ports/memory.js';
import { PROMOTED_MARK } from './marks.js';
import { sourceOf } from '../../trust/sources.js';
import { isReadBy, ownerOf, scopeOf } from './find-skill.js';
import { type Decision, isProofOf } from './skill-life.js';

/** What is not for more readers: what was asked for before, and what became of it. */
const ANEW = { cues: [], fingerprints: [], executionCount: 0, successRate: 1 } satisfies Partial<Skill>;

/**
 * Stores a copy of a skill for more readers, a candidate there: it is verified beside what they read, since its evidence names what
 * only those before them could, and then waits for review. What it was asked for stays where it was. The same again finds the copy.
 *
 * @param decision.namesMax how many skills the new owner may have; 0: any number
 * @throws EtudeError INVALID_ARGUMENT for readers that are not more; FAILED_PRECONDITION for a skill that is not in use or has no proof
 *   for its content, where it calls a skill that the new readers can't see, and where they have as many as they may
 */
export async function promoteSkill(
  procedural: ProceduralMemory,
  skill: Skill,
  { scope, namesMax = 0, ...decision }: Decision & { readonly scope: SkillScope; readonly namesMax?: number },
): Promise<Skill> {
  requireWider(skill, scope);
  if (skill.status !== 'active' || !isProofOf(skill, skill.proof))
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `Skill "${skill.name}" is ${skill.status}${skill.proof === undefined ? ' and has no proof' : ''}; only one that is active, with a proof for its content, can be shared.`,
      { field: 'name' },
    );
  const owner = ownerOf(scope, skill.scope);
  const needed = await Promise.all((skill.dependencies ?? []).map((one) => readablePin(procedural, one, owner)));
  const untrusted = [...new Set([...(skill.untrusted ?? []), PROMOTED_MARK])];
  const { by, reason, at } = decision;
  const statusReason = `shared by ${by}${reason === '' ? '' : `: ${reason}`}`;
  const copy = {
    ...skill,
    ...ANEW,
    sources: sourcesFor(scope, skill),
    untrusted,
    statusReason,
    scope: owner,
    createdAt: at,
    updatedAt: at,
  };
  return procedural.store(needed.length === 0 ? copy : { ...copy, dependencies: needed }, {
    by,
    isReviewed: true,
    words: 'kept',
    namesMax,
  });
}

/** No name of a user stands in what other tenants read; nothing that everybody reads is revoked by user. */
function sourcesFor(scope: SkillScope, { sources }: Skill): string[] {
  return scope === 'global' ? sources.filter((name) => sourceOf(name)?.kind !== 'users') : sources;
}

function requireWider(skill: Skill, scope: SkillScope): void {
  const now = scopeOf(skill);
  if (SKILL_SCOPES.indexOf(scope) > SKILL_SCOPES.indexOf(now)) return;
  throw new EtudeError('INVALID_ARGUMENT', `skill "${skill.name}" is shared with ${now} already; take a wider scope than that`, {
    field: 'scope',
  });
}

/** The same content where the new readers see it. A pin is of content, so the proof holds for it as well. */
async function readablePin(procedural: ProceduralMemory, pin: SkillDependency, owner: Scope): Promise<SkillDependency> {
  const views = [owner, ...(['tenant', 'global'] as const).map((scope) => ownerOf(scope, owner))].filter((one) => isReadBy(one, owner));
  for (const view of views) {
    const versions = await procedural.versions(view, pin.name);
    const same = versions.find(({ digest, status }) => digest === pin.digest && (status === 'active' || status === 'deprecated'));
    if (same !== undefined) return { ...pin, ...view, version: same.version };
  }
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `it calls skill "${pin.name}" version ${pin.version} of "${pin.agent}", which its new readers can't see; share and approve that one first`,
    { field: 'scope' },
  );
}
