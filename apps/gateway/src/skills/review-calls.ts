import { EtudeError } from '@etude/contracts/errors';
import type { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import {
  approveSkill,
  archivedLast,
  archiveSkill,
  deprecateSkill,
  rejectSkill,
  restoreSkill,
  rollbackSkill,
} from '@etude/domain/skills/life/decisions';
import type { Decision } from '@etude/domain/skills/life/skill-life';
import { ownerOf, searchSkills } from '@etude/domain/skills/life/find-skill';
import { promoteSkill } from '@etude/domain/skills/life/promote-skill';
import type { Memory } from '@etude/memory/memory';
import { hasRole } from '@etude/platform/auth';
import { z } from 'zod';
import { type CallContext, waitMs } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { claimOnce, decideOnce, firstMeant, type IdentifiedRequest, once, versionWork } from '../calls/once.js';
import { askedSkills, checkedVersion, meantVersion, requireOwner, skillNamed } from '../readers/skill-access.js';
import { named, scopeNamed, skillMessage } from '../readers/skill-message.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { skillOfName } from '../wire/names.js';
import { invalidField, parseField } from '../wire/validation.js';
import { skillDiff } from './diff-skill.js';

const SIMILAR = { limit: 5, similarityMin: 0.5 };
const Digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be the digest of the skill that was reviewed: 64 hexadecimal digits');
const Reason = z.string().trim().max(1_000);
const GivenReason = Reason.min(1, 'must say why');

/** What the moves of a skill's life have in common. */
interface MoveRequest {
  readonly name: string;
  readonly agent: string;
  readonly user: string;
  readonly version: number;
  readonly requestId: string;
}

interface Move {
  readonly method: string;
  /** Statuses of the version that is meant where none is named. */
  readonly from: readonly SkillStatus[];
  readonly to: readonly SkillStatus[];
  readonly reason?: string;
}

/** What reviewers do with one skill: `etude.v1.Skills`. */
export const reviewCalls = {
  async getSkillReview(request, call, deps) {
    const asked = askedSkills(call, request);
    const { procedural } = await deps.memory.open();
    const skill = await meantVersion(procedural, asked, request, ['pending_review']);
    const { name, scope, description, tests, heldOut = [] } = skill;
    const versions = await procedural.versions(skill.scope, skill.name, 'active');
    const active = versions.find(({ version }) => version !== skill.version) ?? null;
    const reader = { ...scope, tenant: asked.tenant };
    const [similar, dependents] = await Promise.all([
      searchSkills(procedural, reader, { text: `${name}\n${description}`, ...SIMILAR }),
      procedural.dependents({ ...scope, name }),
    ]);
    // Tests are hidden from those who only use a skill: what everybody uses is reviewed by operators.
    const withTests = scope.tenant !== GLOBAL_TENANT || hasRole(call.roles, 'operator');
    return {
      skill: skillMessage(skill),
      diff: skillDiff(active, skill, { withTests }),
      tests: withTests ? tests.map((test) => JSON.stringify(test)) : [],
      heldOutCount: heldOut.length,
      similar: similar
        .filter((hit) => hit.skill.name !== name)
        .map((hit) => ({ skill: skillMessage(hit.skill), similarity: hit.similarity })),
      dependents: named(dependents.filter(({ scope: { tenant } }) => tenant === asked.tenant || tenant === GLOBAL_TENANT)).map(
        ({ name: dependent, version, digest }) => ({ name: dependent, version, digest }),
      ),
    };
  },

  async approveSkill(request, call, deps) {
    const digest = parseField(Digest, request.digest, 'digest');
    const mergedName = request.merge === '' ? null : skillOfName(request.merge, 'merge');
    const move: Move = { method: 'ApproveSkill', from: ['pending_review'], to: ['active'] };
    return decideOn(deps, call, request, move, async (skill, decision, { procedural }) => {
      if (request.version === 0) await requireOnlyOne(procedural, skill, digest);
      const merge = mergedName === null ? null : await mergedSkill(procedural, skill, mergedName);
      return approveSkill(procedural, skill, { ...decision, digest, ...(merge === null ? {} : { merge }) });
    });
  },

  async rejectSkill(request, call, deps) {
    const reason = parseField(GivenReason, request.reason, 'reason');
    const move: Move = { method: 'RejectSkill', from: ['pending_review', 'candidate', 'verified'], to: ['rejected'], reason };
    return decideOn(deps, call, request, move, (skill, decision, { procedural }) => rejectSkill(procedural, skill, decision));
  },

  async deprecateSkill(request, call, deps) {
    const replacedBy = request.replacedBy === '' ? {} : { replacedBy: skillOfName(request.replacedBy, 'replaced_by') };
    const reason = parseField(Reason, request.reason, 'reason');
    const move: Move = { method: 'DeprecateSkill', from: ['active'], to: ['deprecated'], reason };
    return decideOn(deps, call, request, move, (skill, decision, { procedural }) =>
      deprecateSkill(procedural, skill, { ...decision, ...replacedBy }),
    );
  },

  async archiveSkill(request, call, deps) {
    const reason = parseField(Reason, request.reason, 'reason');
    const move: Move = { method: 'ArchiveSkill', from: [], to: ['archived'], reason };
    return decideOn(deps, call, request, move, async (skill, decision, { procedural }) => {
      const versions = request.version === 0 ? await procedural.versions(skill.scope, skill.name) : [skill];
      const archived = await archiveSkill(procedural, versions, decision);
      return archived.find(({ version }) => version === skill.version) ?? skill;
    });
  },

  async restoreSkill(request, call, deps) {
    const reason = parseField(Reason, request.reason, 'reason');
    const to = ['active', 'pending_review', 'deprecated', 'candidate', 'rejected'] as const;
    const move: Move = { method: 'RestoreSkill', from: ['archived'], to, reason };
    return decideOn(deps, call, request, move, async (skill, decision, { procedural }) => {
      const together = request.version === 0 ? archivedLast(await procedural.versions(skill.scope, skill.name)) : [];
      const { settings } = await deps.settings.get(skill.scope.tenant, skill.scope.agent);
      const allowed = { ...decision, namesMax: settings.maxSkills };
      const restored = await restoreSkill(procedural, together.length === 0 ? [skill] : together, allowed);
      return restored.find(({ status }) => status === 'active') ?? restored[0] ?? skill;
    });
  },

  async rollbackSkill(request, call, deps) {
    const asked = askedSkills(call, request);
    const reason = parseField(Reason, request.reason, 'reason');
    const toVersion = request.toVersion === 0 ? null : checkedVersion(request.toVersion, 'to_version');
    const memory = await deps.memory.open();
    const { procedural } = memory;
    const newest = await skillNamed(procedural, asked, request.name);
    requireOwner(call, newest);
    const [present = newest] = await procedural.versions(newest.scope, newest.name, 'active');
    const claimed = await claimOnce(memory, requestOf(call, 'RollbackSkill', request), present);
    const act = async () => {
      const meant = { toVersion: toVersion ?? undefined, inUse: claimed.isRepeat ? claimed.version : undefined };
      const active = await rollbackSkill(procedural, present, { by: call.name, at: claimed.at, reason, ...meant });
      if (active.status === 'active') await deps.registration.renewCallers(procedural, active);
      return active;
    };
    return skillMessage(await once(claimed, { ...versionWork(procedural, asked), act }));
  },

  async promoteSkill(request, call, deps) {
    const scope = scopeNamed(request.scope, 'scope');
    if (scope === undefined || scope === 'agent')
      throw invalidField('scope', 'must be SKILL_SCOPE_USER, SKILL_SCOPE_TENANT or SKILL_SCOPE_GLOBAL');
    if (scope === 'global' && !hasRole(call.roles, 'operator'))
      throw new EtudeError('PERMISSION_DENIED', 'Sharing a skill with every tenant needs a key with the role "operator".');
    const asked = askedSkills(call, request);
    const memory = await deps.memory.open();
    const skill = await meantVersion(memory.procedural, asked, request, ['active']);
    const claimed = await claimOnce(memory, requestOf(call, 'PromoteSkill', request), skill);
    const act = async () => {
      const meant = await firstMeant(memory.procedural, claimed, skill);
      const { settings } = await deps.settings.get(asked.tenant, ownerOf(scope, meant.scope).agent);
      const decision = { by: call.name, at: claimed.at, reason: '', scope, namesMax: settings.maxSkills };
      return promoteSkill(memory.procedural, meant, decision);
    };
    const copy = await once(claimed, { ...versionWork(memory.procedural, asked), act });
    const { signal, deadlineMs } = call;
    const patience = { signal, waitMs: waitMs(undefined, deadlineMs - Date.now()) };
    return skillMessage(await deps.registration.settled(memory.procedural, copy, patience));
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

async function decideOn(
  deps: SkillDeps,
  call: CallContext,
  request: MoveRequest,
  { method, from, to, reason = '' }: Move,
  decide: (skill: Skill, decision: Decision, memory: Memory) => Promise<Skill>,
) {
  const asked = askedSkills(call, request);
  const memory = await deps.memory.open();
  const skill = await meantVersion(memory.procedural, asked, request, from);
  requireOwner(call, skill);
  const by = { by: call.name, at: Date.now() };
  const deciding = { request: requestOf(call, method, request), skill, ...by, to };
  const act = async (meant: Skill, at: number) => {
    const decided = await decide(meant, { ...by, at, reason }, memory);
    if (to.includes('active')) await deps.registration.renewCallers(memory.procedural, decided);
    return decided;
  };
  return skillMessage(await decideOnce(memory, deciding, act));
}

function requestOf(call: CallContext, method: string, request: { readonly requestId: string }): IdentifiedRequest {
  return { tenant: call.tenant, requestId: request.requestId, method, body: { ...request } };
}

/** The digest is not of words: of two that wait with one digest it does not say which was looked at. @throws EtudeError ABORTED */
async function requireOnlyOne(procedural: Memory['procedural'], skill: Skill, digest: string): Promise<void> {
  const waiting = (await procedural.versions(skill.scope, skill.name, 'pending_review')).filter((version) => version.digest === digest);
  if (waiting.length < 2) return;
  const versions = waiting.map(({ version }) => version).join(' and ');
  throw new EtudeError(
    'ABORTED',
    `Versions ${versions} of skill "${skill.name}" have this content, in other words; name the one to approve.`,
    {
      field: 'version',
    },
  );
}

/** Of the same owner, the version in use; the user's own before nobody's. @throws EtudeError NOT_FOUND */
async function mergedSkill(procedural: Memory['procedural'], { scope }: Skill, name: string): Promise<Skill> {
  const users = [...new Set([scope.user, null])];
  const readable = (await Promise.all(users.map((user) => procedural.versions({ ...scope, user }, name)))).flat();
  const found = readable.find(({ status }) => status === 'active') ?? readable[0];
  if (found === undefined) throw new EtudeError('NOT_FOUND', `There is no skills/${name} of the same owner to merge.`, { field: 'merge' });
  return found;
}
