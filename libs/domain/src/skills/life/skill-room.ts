import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillOwner } from '../../ports/skill-registry.js';
import { isVersionOf } from './one-active.js';
import { GONE } from './skill-status.js';

/** @param versions of the name that the owner has. Whether the next one of them takes up room that none has yet. */
export function needsRoom(versions: ReadonlyArray<{ readonly status: SkillStatus }>): boolean {
  return versions.every(({ status }) => GONE.has(status));
}

/**
 * Whose names take up room that they did not before, each once.
 *
 * @param versions all of them, before, of the name and owner of a skill
 */
export async function namesThatReturn(
  moved: ReadonlyArray<{ readonly before: Skill; readonly after: Skill }>,
  versions: (skill: Skill) => Promise<readonly Skill[]>,
): Promise<readonly Skill[]> {
  const returning: Skill[] = [];
  for (const { before, after } of moved) {
    if (!GONE.has(before.status) || GONE.has(after.status) || returning.some((one) => isVersionOf(one, after))) continue;
    if (needsRoom(await versions(before))) returning.push(before);
  }
  return returning;
}

/** @param namesMax 0: any number. @throws EtudeError FAILED_PRECONDITION where there are as many as there may be */
export function requireRoom({ agent }: Pick<SkillOwner, 'agent'>, names: number, namesMax: number): void {
  if (namesMax === 0 || names < namesMax) return;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `"${agent}" has as many skills as it may have (max_skills is ${namesMax}); archive some, or raise the setting`,
    { field: ROOM_FIELD },
  );
}

const ROOM_FIELD = 'max_skills';

/** Whether this is the refusal of `requireRoom`, in whichever process. */
export function isWithoutRoom(error: unknown): boolean {
  return errorCode(error) === 'FAILED_PRECONDITION' && errorDetails(error).field === ROOM_FIELD;
}
