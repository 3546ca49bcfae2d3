import { randomUUID } from 'node:crypto';
import { fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { type Skills, type UseSkillRequest, WantedSkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillName, skillResourceName, UserId } from '@etude/contracts/ids';
import type { WantedSkill } from '@etude/contracts/skill-proof';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { findSkill, type SkillReader } from '@etude/domain/skills/life/find-skill';
import { requireEnabled } from '@etude/domain/skills/life/register-skill';
import { loadFunctions } from '@etude/domain/skills/proof/bundle-code';
import { type SkillCall, useSkill } from '@etude/domain/skills/proof/use-skill';
import { claimRequest } from '@etude/memory/layers/repeats';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import { requireOwnRecord } from '../calls/roles.js';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { refuseSecrets } from '../calls/told-secrets.js';
import { askedSkills, ownScope, skillNamed } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { askedPage, optionalAgent, optionalRequestId, skillOfName } from '../wire/names.js';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import { hasRole, type Role } from '@etude/platform/auth';
import { toWire } from '@etude/contracts/wire/messages';

const Names = z.array(SkillName).min(1).max(50);
const Stdin = z.string().max(1_000_000);

export const useCalls = {
  async useSkill(request, call, deps) {
    const { signal } = call;
    const name = skillOfName(request.name);
    const stdin = parseField(Stdin, request.stdin, 'stdin');
    const parameters = request.parameters ?? {};
    const memory = await deps.memory.open();
    const reader = await readerOf(memory, request, call);
    if (reader === null) return notFound(request.name);
    const use = identifiedUse(memory, reader, request.requestId, { name, parameters, stdin });
    requireEnabled(reader.agent, (await deps.settings.get(reader.tenant, reader.agent)).settings);
    const asked = { reader, name, parameters, ...use, ...(stdin === '' ? {} : { stdin }) };
    const used = await useSkill(asked, { ...deps, procedural: memory.procedural }, signal);
    if (used === null) return request.noRequest ? notFound(request.name) : missing(deps, request, reader, parameters);
    const { success, version, output, error, durationMs, resultNote: note } = used;
    const result = success && used.result !== undefined ? { result: fromJson(ValueSchema, used.result as JsonValue) } : {};
    return { success, version, output, error, durationMs, note, ...result, name: skillResourceName(used.name) };
  },

  async loadFunctions(request, call, deps) {
    const named = request.names.map((name) => name.replace(/^skills\//, ''));
    const names = parseField(Names, named, 'names');
    const reader = ownScope(call, request);
    requireEnabled(reader.agent, (await deps.settings.get(reader.tenant, reader.agent)).settings);
    const { procedural } = await deps.memory.open();
    const { functions, code } = await loadFunctions(reader, names, { ...deps, procedural });
    return { functions: functions.map((one) => ({ ...one, name: skillResourceName(one.name) })), code };
  },

  async requestSkill(request, call, deps) {
    const reader = ownScope(call, request);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const name = parseField(SkillName, request.name.replace(/^skills\//, ''), 'name');
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
    // A wish is a request for a skill. Only a reviewer's key vouches for its text.
    const vouched = hasRole(roles, 'reviewer') ? { ...wish, vouchedBy: by } : wish;
    return wantedMessage(await deps.wanted.request({ wish: vouched, requestId }));
  },

  async getWantedSkill(request, call, deps) {
    return wantedMessage(await seenWish(deps, request, call));
  },

  async withdrawWantedSkill(request, call, deps) {
    const reason = parseField(Reason, request.reason, 'reason');
    const { tenant, id, user } = await seenWish(deps, request, call);
    requireOwnRecord(call, { user });
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

/** The named agent, else any owner of the skill; null if no owner has the skill. */
async function readerOf({ procedural }: Memory, request: UseSkillRequest, call: CallContext): Promise<SkillReader | null> {
  if (request.agent !== '') return ownScope(call, request);
  const asked = askedSkills(call, request);
  try {
    const { scope } = await skillNamed(procedural, asked, request.name);
    return { tenant: asked.tenant, agent: scope.agent, user: asked.user };
  } catch (error) {
    if (error instanceof EtudeError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

/** Requests the missing skill for later uses. No reviewer vouches for this wish. */
async function missing(deps: SkillDeps, request: UseSkillRequest, reader: SkillReader, example: JsonObject) {
  const name = skillOfName(request.name);
  try {
    const wanted = await deps.wishes.request(reader, { name, description: '', example });
    return { ...notFound(request.name), skillRequestSubmitted: true, wantedSkill: `wantedSkills/${wanted}` };
  } catch (error) {
    if (errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    return { ...notFound(request.name), error: `Skill not found. ${(error as Error).message}` };
  }
}

const notFound = (name: string) => ({ success: false, error: 'Skill not found', name });

/** The id of a use. With a request id, also its claim, which throws EtudeError ALREADY_EXISTS if another request had the id. */
function identifiedUse(
  { store }: Pick<Memory, 'store'>,
  { tenant, agent, user }: SkillReader,
  requestId: string,
  content: unknown,
): Pick<SkillCall, 'useId' | 'claim'> {
  const key = optionalRequestId(requestId);
  if (key === null) return { useId: randomUUID() };
  const digest = contentDigest({ method: 'UseSkill', agent, user, content });
  const request = { layer: 'procedural', scope: { tenant, agent, user }, requestId: key, digest, at: Date.now() } as const;
  return { useId: key, claim: () => claimRequest(store, request) };
}

const PAGE = { max: 200, standard: 50 };
const Description = z.string().trim().max(4_000);
const Reason = z.string().trim().max(1_000);
const WishName = z.string().regex(/^wantedSkills\/w[0-9a-f]{8,64}$/, 'must look like "wantedSkills/w0192f0c8a1b2"');
const EXAMPLE_MAX_CHARS = 16_000;

/**
 * Finds a wish, which has the same readers as the resulting skill. If the wish has no user, every caller of the tenant may read it.
 *
 * @throws EtudeError NOT_FOUND
 */
async function seenWish(deps: SkillDeps, request: { name: string; user: string }, { tenant, roles }: CallContext): Promise<WantedSkill> {
  const { name } = request;
  const id = parseField(WishName, name, 'name').slice('wantedSkills/'.length);
  const user = wishUserOf(request, roles);
  const wanted = await deps.wanted.get(tenant, id);
  if (wanted !== null && (user === undefined || wanted.user === null || wanted.user === user)) return wanted;
  throw new EtudeError('NOT_FOUND', `There is no ${name} that you may read. If a user asked for this skill, set the field user.`);
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
