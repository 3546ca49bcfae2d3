import { EtudeError } from '@etude/contracts/errors';
import { CheckSkillResponseSchema, type SkillDraft, type Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { type Decision, keyOf, wasRejectedByPerson } from '@etude/domain/skills/life/skill-life';
import { checkSkill } from '@etude/domain/skills/proof/admit-skill';
import { isProven } from '@etude/domain/skills/proof/proof';
import { hasRole } from '@etude/platform/auth';
import { toWire } from '@etude/contracts/wire/messages';
import { invalidField } from '@etude/contracts/wire/validation';
import type { Memory } from '@etude/memory/memory';
import { type CallContext, waitMs } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { once, versionWork } from '../calls/once.js';
import { askedSkills, authorOf, meantVersion, named, requireAuthor, skillMessage } from '../readers/readers.js';
import { checkedDraft } from '../registration/skill-draft.js';
import type { Patience, Registration, SkillDeps } from '../registration/skill-registration.js';

export const registryCalls = {
  async checkSkill(request, call, deps) {
    const { procedural } = await deps.memory.open();
    const candidate = await deps.registration.completed(procedural, registrationOf(request.skill, call), call.signal);
    const check = await checkSkill(candidate, { ...deps, procedural }, call.signal);
    const { contract, found } = check;
    return toWire(CheckSkillResponseSchema, { ...check, ...found, ...contract, dependencies: named(candidate.dependencies) });
  },

  async registerSkill(request, call, deps) {
    const { tenant, roles, signal } = call;
    const { baseVersion, requestId } = request;
    const registration = { ...registrationOf(request.skill, call, baseVersion), isReviewer: hasRole(roles, 'reviewer') };
    const { draft, reader } = registration;
    if (baseVersion < 0) throw invalidField('base_version', `must be the edited version, or 0, but is ${baseVersion}`);
    const memory = await deps.memory.open();
    const { procedural } = memory;
    const { digest: _digest, createdAt: _createdAt, updatedAt: _updatedAt, ...body } = draft.skill;
    const identified = { tenant, requestId, method: 'RegisterSkill', body: { ...body, isProgram: draft.isProgram, baseVersion } };
    const stored = await once(
      memory,
      identified,
      { scope: { ...draft.skill.scope, agent: reader.agent } },
      {
        ...versionWork(procedural, call),
        act: ({ at }) => deps.registration.register(procedural, registration, signal, at),
      },
    );
    return skillMessage(request.wait ? await deps.registration.settled(procedural, stored, patienceOf(call)) : stored);
  },

  async verifySkill(request, call, deps) {
    const move: Move = {
      method: 'VerifySkill',
      from: ['candidate', 'rejected', 'active', 'pending_review'],
      allow: requireAuthor,
    };
    const verified = await decideOnce(deps, call, request, move, async (skill, { by }, { procedural }) => {
      requireVerifiable(skill, call, deps);
      const begun = WITH_EVIDENCE.has(skill.status) ? skill : await verifyAgain(procedural, skill, by);
      return deps.registration.verified(procedural, begun, patienceOf(call));
    });
    return skillMessage(verified);
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** @throws EtudeError FAILED_PRECONDITION for archived versions and for versions with a valid proof; PERMISSION_DENIED */
function requireVerifiable(skill: Skill, call: CallContext, deps: SkillDeps): void {
  const { status, name, version } = skill;
  if (WITH_EVIDENCE.has(status)) return;
  const what = `Version ${version} of ${name} is ${status}`;
  const isReviewer = hasRole(call.roles, 'reviewer');
  if (status === 'rejected') {
    if (isReviewer || !wasRejectedByPerson(skill)) return;
    throw new EtudeError('PERMISSION_DENIED', `${what} by a reviewer. Only a key with the role "reviewer" may verify it again.`);
  }
  if (status !== 'deprecated') throw new EtudeError('FAILED_PRECONDITION', `${what}. Restore it before you verify it again.`);
  if (isProven(skill, deps.checker))
    throw new EtudeError('FAILED_PRECONDITION', `${what} and has a valid proof. RollbackSkill makes it active again.`);
  if (!isReviewer) throw new EtudeError('PERMISSION_DENIED', `${what}. Only a key with the role "reviewer" may verify it again.`);
}

/** Makes a rejected or deprecated version a candidate again. */
async function verifyAgain(procedural: ProceduralMemory, skill: Skill, by: string): Promise<Skill> {
  const move = { key: keyOf(skill), to: 'candidate', from: [skill.status], by, reason: 'to be verified again', at: Date.now() } as const;
  const [candidate] = await procedural.move([move]);
  return candidate ?? skill;
}

/** Statuses from which a version is verified directly, without becoming a candidate again. */
const WITH_EVIDENCE: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'active', 'pending_review']);

/** @throws EtudeError INVALID_ARGUMENT, PERMISSION_DENIED */
function registrationOf(draft: SkillDraft | undefined, call: CallContext, baseVersion = 0): Registration {
  if (draft === undefined) throw invalidField('skill', 'is required');
  const { reader, scope } = authorOf(call, draft, 'skill');
  return { draft: checkedDraft(draft, scope, Date.now()), reader, baseVersion, by: call.name };
}

/** The common fields of requests that change a skill's status. */
export interface MoveRequest {
  readonly name: string;
  readonly agent: string;
  readonly user: string;
  /** Absent or 0: the request names no version. */
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
