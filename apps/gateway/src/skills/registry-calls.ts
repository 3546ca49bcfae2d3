import { EtudeError } from '@etude/contracts/errors';
import { CheckSkillResponseSchema, type SkillDraft, type Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import type { SkillReader } from '@etude/domain/skills/life/find-skill';
import { keyOf, wasRejectedByPerson } from '@etude/domain/skills/life/skill-life';
import { checkSkill } from '@etude/domain/skills/proof/admit-skill';
import { isProven } from '@etude/domain/skills/proof/proof';
import { hasRole } from '@etude/platform/auth';
import { type CallContext, waitMs } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { claimOnce, firstMeant, once, versionWork } from '../calls/once.js';
import { authorOf, requireAuthor } from '../readers/readers.js';
import { askedSkills, meantVersion } from '../readers/skill-access.js';
import { named, skillMessage } from '../readers/skill-message.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { toWire } from '../wire/messages.js';
import { invalidField } from '../wire/validation.js';
import { checkedDraft, type CheckedDraft } from '../registration/skill-draft.js';

interface Authored {
  readonly draft: CheckedDraft;
  readonly reader: SkillReader;
}

/** The way in: `etude.v1.Skills`. */
export const registryCalls = {
  async checkSkill(request, call, deps) {
    const { signal, name: by } = call;
    const { draft, reader } = authored(request.skill, call);
    const { procedural } = await deps.memory.open();
    const { registration, sandboxes, analyser, checker, mutationScoreMin, templateFor } = deps;
    const candidate = await registration.completed(procedural, { draft, reader, by, baseVersion: 0 }, signal);
    const check = await checkSkill(candidate, { procedural, sandboxes, analyser, checker, mutationScoreMin, templateFor }, signal);
    const { contract, found } = check;
    return toWire(CheckSkillResponseSchema, { ...check, ...found, ...contract, dependencies: named(candidate.dependencies) });
  },

  async registerSkill(request, call, deps) {
    const { tenant, name: by, roles, signal, deadlineMs } = call;
    const { draft, reader } = authored(request.skill, call);
    const { baseVersion, requestId } = request;
    if (baseVersion < 0) throw invalidField('base_version', `must be the version that was edited, or 0; it is ${baseVersion}`);
    const memory = await deps.memory.open();
    const { digest: _digest, createdAt: _createdAt, updatedAt: _updatedAt, ...body } = draft.skill;
    const asked = { tenant, requestId, method: 'RegisterSkill', body: { ...body, isProgram: draft.isProgram, baseVersion } };
    const claimed = await claimOnce(memory, asked, { scope: { ...draft.skill.scope, agent: reader.agent } });
    const { registration } = deps;
    const registering = { draft, reader, baseVersion, by, isReviewer: hasRole(roles, 'reviewer') };
    const act = () => registration.registerOnce(memory.procedural, registering, claimed, signal);
    const stored = await once(claimed, { ...versionWork(memory.procedural, asked), act });
    if (!request.wait) return skillMessage(stored);
    const patience = { signal, waitMs: waitMs(undefined, deadlineMs - Date.now()) };
    return skillMessage(await registration.settled(memory.procedural, stored, patience));
  },

  async verifySkill(request, call, deps) {
    const { tenant, name: by, signal, deadlineMs } = call;
    const asked = askedSkills(call, request);
    const memory = await deps.memory.open();
    const { procedural } = memory;
    const skill = await meantVersion(procedural, asked, request, ['candidate', 'rejected', 'active', 'pending_review']);
    requireAuthor(call, skill);
    const claimed = await claimOnce(memory, { tenant, requestId: request.requestId, method: 'VerifySkill', body: { ...request } }, skill);
    let isBegun = true;
    const act = async () => {
      isBegun = false;
      const meant = await firstMeant(procedural, claimed, skill);
      requireVerifiable(meant, call, deps);
      return WITH_EVIDENCE.has(meant.status) ? meant : verifyAgain(deps, procedural, meant, by);
    };
    const begun = await once(claimed, { ...versionWork(procedural, asked), act });
    if (isBegun && begun.status !== 'candidate') return skillMessage(begun);
    const patience = { signal, waitMs: waitMs(undefined, deadlineMs - Date.now()) };
    return skillMessage(await deps.registration.verifiedInTime(procedural, begun, patience));
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** @throws EtudeError FAILED_PRECONDITION for what nobody uses, and for what could be rolled back to */
function requireVerifiable(skill: Skill, call: CallContext, deps: SkillDeps): void {
  const { status, name, version } = skill;
  if (WITH_EVIDENCE.has(status)) return;
  const what = `Version ${version} of ${name} is ${status}`;
  const isReviewer = hasRole(call.roles, 'reviewer');
  if (status === 'rejected') {
    if (isReviewer || !wasRejectedByPerson(skill)) return;
    throw new EtudeError('PERMISSION_DENIED', `${what} by somebody; a key with the role "reviewer" may have it verified again.`);
  }
  if (status !== 'deprecated') throw new EtudeError('FAILED_PRECONDITION', `${what}; restore it before it is verified again.`);
  if (isProven(skill, deps.checker))
    throw new EtudeError('FAILED_PRECONDITION', `${what}, and its evidence is believed; roll back to it, and it is used again.`);
  if (!isReviewer) throw new EtudeError('PERMISSION_DENIED', `${what}; a key with the role "reviewer" may have it verified again.`);
}

/** One that was rejected, or is not used any more, is a candidate again. @throws EtudeError FAILED_PRECONDITION without room for it */
async function verifyAgain(deps: SkillDeps, procedural: ProceduralMemory, skill: Skill, by: string): Promise<Skill> {
  const move = { key: keyOf(skill), to: 'candidate', from: [skill.status], by, reason: 'to be verified again', at: Date.now() } as const;
  const { settings } = await deps.settings.get(skill.scope.tenant, skill.scope.agent);
  const [candidate] = await procedural.move([move], { namesMax: settings.maxSkills });
  return candidate ?? skill;
}

/** Verified where they stand; `verified` is a candidate on its way. */
const WITH_EVIDENCE: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'active', 'pending_review']);

/** @throws EtudeError INVALID_ARGUMENT, PERMISSION_DENIED */
function authored(draft: SkillDraft | undefined, call: CallContext): Authored {
  if (draft === undefined) throw invalidField('skill', 'is required');
  const { reader, scope } = authorOf(call, draft, 'skill');
  return { draft: checkedDraft(draft, scope, Date.now()), reader };
}
