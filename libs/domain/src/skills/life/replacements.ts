import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { behind, type CallGraph, type MovedVersion } from './callers.js';
import { findSkill } from './find-skill.js';

/**
 * What is named in a skill's place is in use when it is named: so no chain of replacements leads back, since what is deprecated takes
 * nobody's place, and what comes into use again has nobody in its place.
 *
 * @param graph as it was before
 * @param moved made at once
 * @returns what is named: it has to be as it was read
 * @throws EtudeError ABORTED
 */
export async function requireReplacements(graph: CallGraph, moved: readonly MovedVersion[]): Promise<readonly Skill[]> {
  const view = behind(graph, moved);
  const found: Skill[] = [];
  for (const { before, after, move } of moved) {
    const { scope, name } = after;
    const { replacedBy } = move;
    const isKnown = before.status === 'deprecated' && before.replacedBy === replacedBy;
    if (replacedBy === undefined || replacedBy === null || isKnown) continue;
    const replacement = await findSkill(view, scope, replacedBy, { status: 'active' });
    if (replacement === null)
      throw new EtudeError(
        'ABORTED',
        `skill "${replacedBy}" is not in use, or not for everybody who reads "${name}", so it can't be used in its place; read both again and decide again`,
        { field: 'replaced_by' },
      );
    found.push(replacement);
  }
  return found;
}
