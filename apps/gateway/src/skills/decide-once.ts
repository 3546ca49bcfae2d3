import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { Decision } from '@etude/domain/skills/life/skill-life';
import type { Memory } from '@etude/memory/memory';
import { type CallContext, waitMs } from '../calls/caller.js';
import { once, versionWork } from '../calls/once.js';
import { askedSkills, meantVersion } from '../readers/readers.js';
import type { Patience, SkillDeps } from '../registration/skill-registration.js';

/** What the moves of a skill's life have in common. */
export interface MoveRequest {
  readonly name: string;
  readonly agent: string;
  readonly user: string;
  readonly version: number;
  readonly requestId: string;
}

export interface Move {
  readonly method: string;
  /** Statuses of the version that is meant where none is named. */
  readonly from: readonly SkillStatus[];
  /** Statuses by which a change is known to be this one. */
  readonly to: readonly SkillStatus[];
  readonly reason?: string;
  /** @throws EtudeError PERMISSION_DENIED */
  readonly allow: (call: CallContext, skill: Skill) => void;
}

/**
 * Decides once per request. A repeat of one that died on its way acts on the version that was meant the first time, as of then, and not
 * where its own change is there already: its own, and not merely one like it.
 */
export async function decideOnce(
  deps: SkillDeps,
  call: CallContext,
  request: MoveRequest,
  { method, from, to, reason = '', allow }: Move,
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
      const isDone = isRepeat && (meant.history ?? []).some((change) => change.at === at && change.by === by && to.includes(change.to));
      return isDone ? meant : decide(meant, { by, at, reason }, memory);
    },
  });
}

/** As long as a call may wait where it says nothing of that. */
export const patienceOf = ({ signal, deadlineMs }: CallContext): Patience => ({
  signal,
  waitMs: waitMs(undefined, deadlineMs - Date.now()),
});
