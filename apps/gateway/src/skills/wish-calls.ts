import { EtudeError } from '@etude/contracts/errors';
import { type Skills, WantedSkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillName, skillResourceName, UserId } from '@etude/contracts/ids';
import type { WantedSkill } from '@etude/contracts/skill-proof';
import { findSkill } from '@etude/domain/skills/life/find-skill';
import { requireName } from '@etude/domain/skills/life/register-skill';
import { hasRole, type Role } from '@etude/platform/auth';
import { z } from 'zod';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { refuseSecrets } from '../memory/told-secrets.js';
import { ownScope } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { askedPage, optionalAgent, optionalRequestId } from '../wire/names.js';
import { toWire } from '@etude/contracts/wire/messages';
import { invalidField, parseField } from '@etude/contracts/wire/validation';

const PAGE = { max: 200, standard: 50 };
const Description = z.string().trim().max(4_000);
const Reason = z.string().trim().max(1_000);
const WishName = z.string().regex(/^wantedSkills\/w[0-9a-f]{8,64}$/, 'must look like "wantedSkills/w0192f0c8a1b2"');
const EXAMPLE_MAX_CHARS = 16_000;

export const wishCalls = {
  async requestSkill(request, call, deps) {
    const reader = ownScope(call, request);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const name = parseField(SkillName, request.name.replace(/^skills\//, ''), 'name');
    requireName(name);
    const description = parseField(Description, request.description, 'description');
    const example = request.example ?? null;
    if (JSON.stringify(example).length > EXAMPLE_MAX_CHARS)
      throw invalidField('example', `must not have more than ${EXAMPLE_MAX_CHARS} characters as JSON`);
    await refuseSecrets({ description, example });
    const { procedural } = await deps.memory.open();
    if (await findSkill(procedural, reader, name)) {
      const message = `There is an active skill "${name}" for this reader already; use it, or register another version.`;
      throw new EtudeError('FAILED_PRECONDITION', message);
    }
    const { roles, name: by } = call;
    const wish = { ...reader, skill: name, description, example };
    // Only a reviewer's key vouches for the words of a wish.
    const vouched = hasRole(roles, 'reviewer') ? { ...wish, vouchedBy: by } : wish;
    return wantedMessage(await deps.wanted.request({ wish: vouched, requestId }));
  },

  async getWantedSkill(request, call, deps) {
    return wantedMessage(await seenWish(deps, request, call));
  },

  async withdrawWantedSkill(request, call, deps) {
    const reason = parseField(Reason, request.reason, 'reason');
    const { tenant, id } = await seenWish(deps, request, call);
    return wantedMessage(await deps.wanted.withdraw(tenant, id, reason));
  },

  async listWantedSkills(request, call, deps) {
    const { tenant, roles } = call;
    const agent = optionalAgent(request.agent);
    const user = wishUserOf(request, roles);
    const bound = ['ListWantedSkills', tenant, agent, user ?? null, user === undefined];
    const { pageSize: limit, after, tokenOf } = askedPage(request, PAGE, bound);
    const { wishes, nextAfter } = await deps.wanted.list(tenant, { limit, after, agent, ...(user === undefined ? {} : { user }) });
    return { wantedSkills: wishes.map(wantedMessage), nextPageToken: tokenOf(nextAfter) };
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/**
 * A wish has the same readers as the resulting skill. A wish without a user is shown to every caller of the tenant.
 *
 * @throws EtudeError NOT_FOUND
 */
async function seenWish(deps: SkillDeps, request: { name: string; user: string }, { tenant, roles }: CallContext): Promise<WantedSkill> {
  const { name } = request;
  const id = parseField(WishName, name, 'name').slice('wantedSkills/'.length);
  const user = wishUserOf(request, roles);
  const wanted = await deps.wanted.get(tenant, id);
  if (wanted !== null && (user === undefined || wanted.user === null || wanted.user === user)) return wanted;
  throw new EtudeError('NOT_FOUND', `There is no ${name} for this reader. To see a user's wish, name the user.`);
}

/** undefined: all users, if a reviewer names no user; null: wishes without a user. */
function wishUserOf({ user }: { readonly user: string }, roles: readonly Role[]): string | null | undefined {
  if (user !== '') return parseField(UserId, user, 'user');
  return hasRole(roles, 'reviewer') ? undefined : null;
}

function wantedMessage(wanted: WantedSkill) {
  const { id, skill, registered } = wanted;
  return toWire(WantedSkillSchema, {
    ...wanted,
    name: `wantedSkills/${id}`,
    skill: skillResourceName(skill),
    registeredSkill: registered && skillResourceName(registered),
  });
}
