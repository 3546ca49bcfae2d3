import type { Skill } from '@etude/contracts/memory';

const CALLED: Readonly<Record<Skill['kind'], string>> = {
  function: 'a function',
  snippet: 'a snippet, which is shown',
  procedure: 'a procedure, which is shown',
};

/**
 * Why this version can't take the place of the one in use: that one is of another kind, so that its tests can't be held against this
 * one, and whoever calls it would find nothing to call. null where nothing stands against it.
 */
export function otherKindReason(skill: Pick<Skill, 'kind'>, replaced: Pick<Skill, 'kind' | 'version'> | null): string | null {
  if (replaced === null || replaced.kind === skill.kind) return null;
  return `version ${replaced.version}, which it would replace, is ${CALLED[replaced.kind]}, and it is ${CALLED[skill.kind]}; give it another name`;
}
