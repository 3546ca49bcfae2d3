import { SKILL_STATUSES, type SkillStatus } from '@etude/contracts/skill-proof';

/** Nobody goes on from these versions unless somebody says so, and they take up no room. */
export const GONE: ReadonlySet<SkillStatus> = new Set(['rejected', 'archived']);

/** What takes up room. */
export const NOT_GONE: readonly SkillStatus[] = SKILL_STATUSES.filter((status) => !GONE.has(status));

/** What may run, or may once it is verified or approved, without being stored again. */
export const LIVING: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review', 'active']);

/** What may run, or is to be approved: what it calls has to stay as it is. */
export const IN_USE: ReadonlySet<SkillStatus> = new Set(['active', 'pending_review']);

/** What another skill may be pinned to. */
export const CALLABLE: ReadonlySet<SkillStatus> = new Set(['active', 'deprecated']);
