import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { Decision } from '@etude/domain/skills/life/skill-life';
import type { Memory } from '@etude/memory/memory';
import { type CallContext, waitMs } from '../calls/caller.js';
import { once, versionWork } from '../calls/once.js';
import { askedSkills, meantVersion } from '../readers/readers.js';
import type { Patience, SkillDeps } from '../registration/skill-registration.js';

/** The common fields of requests that change a skill's status. */
export interface MoveRequest {
  readonly name: string;
  readonly agent: string;
  readonly user: string;
  /** Absent or 0: none named. */
  readonly version?: number;
  readonly requestId: string;
}

export interface Move {
  readonly method: string;
  /** If the request names no version, the newest version with one of these statuses is changed. */
  readonly from: readonly SkillStatus[];
  readonly reason?: string;
  /** @throws EtudeError PERMISSION_DENIED */
  readonly allow: (call: CallContext, skill: Skill) => void;
}

/** Decides once per request. A repeat after a crash decides again about the version of the first call; decisions are idempotent. */
export async function decideOnce(
  deps: SkillDeps,
  call: CallContext,
  request: MoveRequest,
  { method, from, reason = '', allow }: Move,
  decide: (skill: Skill, decision: Decision, memory: Memory) => Promise<Skill>,
): Promise<Skill> {
  const { tenant, name: by } = call;
  const memory = await deps.memory.open();
  const { procedural } = memory;
  const skill = await meantVersion(procedural, askedSkills(call, request), request, from);
  allow(call, skill);
  const identified = { tenant, requestId: request.requestId, method, body: { ...request } };
  return once(memory, identified, skill, {
    ...versionWork(procedural, call),
    act: async ({ isRepeat, version, at }) => {
      const versions = isRepeat ? await procedural.versions(skill.scope, skill.name) : [];
      const meant = versions.find((one) => one.version === version) ?? skill;
      return decide(meant, { by, at, reason }, memory);
    },
  });
}

/** The default waiting time of a call. */
export const patienceOf = ({ signal, deadlineMs }: CallContext): Patience => ({
  signal,
  waitMs: waitMs(undefined, deadlineMs - Date.now()),
});
