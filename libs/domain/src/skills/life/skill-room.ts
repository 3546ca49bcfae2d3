import { EtudeError } from '@etude/contracts/errors';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillOwner } from '../../ports/skill-registry.js';

/** Of versions that take up no room. */
const GONE: ReadonlySet<SkillStatus> = new Set(['rejected', 'archived']);

/** @param versions of the name that an agent has, whoever the user is. Whether the next one of them takes up room that none has yet. */
export function needsRoom(versions: ReadonlyArray<{ readonly status: SkillStatus }>): boolean {
  return versions.every(({ status }) => GONE.has(status));
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
  const { code, details } = (error ?? {}) as { code?: unknown; details?: { field?: unknown } };
  return code === 'FAILED_PRECONDITION' && details?.field === ROOM_FIELD;
}
