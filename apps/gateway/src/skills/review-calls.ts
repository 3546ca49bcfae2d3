import { EtudeError } from '@etude/contracts/errors';
import type { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import { approveSkill, archiveSkill, deprecateSkill, rejectSkill, restoreSkill, rollbackSkill } from '@etude/domain/skills/life/decisions';
import { ownerOf, searchSkills } from '@etude/domain/skills/life/find-skill';
import { promoteSkill } from '@etude/domain/skills/life/register-skill';
import type { Memory } from '@etude/memory/memory';
import { hasRole } from '@etude/platform/auth';
import { z } from 'zod';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { askedSkills, checkedVersion, meantVersion, named, requireOwner, scopeNamed, skillMessage } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { skillOfName } from '../wire/names.js';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import { decideOnce, type Move, type MoveRequest, patienceOf } from './registry-calls.js';
import { skillDiff } from './read-calls.js';

const SIMILAR = { limit: 5, similarityMin: 0.5 };
const Digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be the digest of the skill that was reviewed: 64 hexadecimal digits');
const Reason = z.string().trim().max(1_000);
const GivenReason = Reason.min(1, 'must say why');

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
    // Tests are hidden from mere users of a skill. All tenants use global skills, so only operators see their tests.
    const withTests = scope.tenant !== GLOBAL_TENANT || hasRole(call.roles, 'operator');
    const seen = dependents.filter(({ scope: { tenant } }) => tenant === asked.tenant || tenant === GLOBAL_TENANT);
    return {
      skill: skillMessage(skill),
      diff: skillDiff(active, skill, withTests),
      tests: withTests ? tests.map((test) => JSON.stringify(test)) : [],
      heldOutCount: heldOut.length,
      similar: similar
        .filter((hit) => hit.skill.name !== name)
        .map((hit) => ({ skill: skillMessage(hit.skill), similarity: hit.similarity })),
      dependents: named(seen.map(({ name: dependent, version, digest }) => ({ name: dependent, version, digest }))),
    };
  },

  async approveSkill(request, call, deps) {
    const digest = parseField(Digest, request.digest, 'digest');
    const mergedName = request.merge === '' ? null : skillOfName(request.merge, 'merge');
    return decided(deps, call, request, 'ApproveSkill', ['pending_review'], async (skill, decision, { procedural }) => {
      const merge = mergedName === null ? {} : { merge: await mergedSkill(procedural, skill, mergedName) };
      return approveSkill(procedural, skill, { ...decision, digest, ...merge });
    });
  },

  async rejectSkill(request, call, deps) {
    parseField(GivenReason, request.reason, 'reason');
    const from = ['pending_review', 'candidate', 'verified'] as const;
    return decided(deps, call, request, 'RejectSkill', from, (skill, decision, { procedural }) => rejectSkill(procedural, skill, decision));
  },

  async deprecateSkill(request, call, deps) {
    const replacedBy = request.replacedBy === '' ? {} : { replacedBy: skillOfName(request.replacedBy, 'replaced_by') };
    return decided(deps, call, request, 'DeprecateSkill', ['active'], (skill, decision, { procedural }) =>
      deprecateSkill(procedural, skill, { ...decision, ...replacedBy }),
    );
  },

  async archiveSkill(request, call, deps) {
    return decided(deps, call, request, 'ArchiveSkill', [], async (skill, decision, { procedural }) => {
      const versions = request.version === 0 ? await procedural.versions(skill.scope, skill.name) : [skill];
      const archived = await archiveSkill(procedural, versions, decision);
      return archived.find(({ version }) => version === skill.version) ?? skill;
    });
  },

  async restoreSkill(request, call, deps) {
    return decided(deps, call, request, 'RestoreSkill', ['archived'], async (skill, decision, { procedural }) => {
      const together = request.version === 0 ? await procedural.versions(skill.scope, skill.name, 'archived') : [];
      const restored = await restoreSkill(procedural, together.length === 0 ? [skill] : together, decision);
      return restored.find(({ status }) => status === 'active') ?? restored[0] ?? skill;
    });
  },

  async rollbackSkill(request, call, deps) {
    const toVersion = request.toVersion === 0 ? undefined : checkedVersion(request.toVersion, 'to_version');
    return decided(deps, call, request, 'RollbackSkill', ['active'], (skill, decision, { procedural }) =>
      rollbackSkill(procedural, skill, { ...decision, toVersion }),
    );
  },

  async promoteSkill(request, call, deps) {
    const scope = scopeNamed(request.scope, 'scope');
    if (scope === undefined || scope === 'agent')
      throw invalidField('scope', 'must be SKILL_SCOPE_USER, SKILL_SCOPE_TENANT or SKILL_SCOPE_GLOBAL');
    if (scope === 'global' && !hasRole(call.roles, 'operator'))
      throw new EtudeError('PERMISSION_DENIED', 'Sharing a skill with every tenant needs a key with the role "operator".');
    const move: Move = { method: 'PromoteSkill', from: ['active'], allow: () => undefined };
    const copy = await decideOnce(deps, call, request, move, async (skill, decision, { procedural }) => {
      const { settings } = await deps.settings.get(call.tenant, ownerOf(scope, skill.scope).agent);
      return promoteSkill(procedural, skill, { ...decision, scope, namesMax: settings.maxSkills });
    });
    const { procedural } = await deps.memory.open();
    return skillMessage(await deps.registration.settled(procedural, copy, patienceOf(call)));
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** Decides once. If the skill became active, its callers are verified again. @throws EtudeError INVALID_ARGUMENT for a wrong reason */
async function decided(
  deps: SkillDeps,
  call: CallContext,
  request: MoveRequest & { readonly reason?: string },
  method: string,
  from: Move['from'],
  decide: Parameters<typeof decideOnce>[4],
) {
  const reason = parseField(Reason, request.reason ?? '', 'reason');
  const decideAll: typeof decide = async (meant, decision, memory) => {
    const skill = await decide(meant, decision, memory);
    if (skill.status === 'active') await deps.registration.renewCallers(memory.procedural, skill);
    return skill;
  };
  return skillMessage(await decideOnce(deps, call, request, { method, from, reason, allow: requireOwner }, decideAll));
}

/** A skill of the same owner by name: the active version first, a user's own skill before a skill without a user. @throws EtudeError NOT_FOUND */
async function mergedSkill(procedural: Memory['procedural'], { scope }: Skill, name: string): Promise<Skill> {
  const users = [...new Set([scope.user, null])];
  const readable = (await Promise.all(users.map((user) => procedural.versions({ ...scope, user }, name)))).flat();
  const found = readable.find(({ status }) => status === 'active') ?? readable[0];
  if (found === undefined) throw new EtudeError('NOT_FOUND', `The owner of this skill has no skills/${name} to merge.`, { field: 'merge' });
  return found;
}
