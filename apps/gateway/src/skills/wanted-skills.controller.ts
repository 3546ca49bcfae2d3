import type { MessageInitShape } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import type {
  GetWantedSkillRequest,
  ListWantedSkillsRequest,
  RequestSkillRequest,
  Skills,
  WantedSkillSchema,
  WithdrawWantedSkillRequest,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { SkillName, skillResourceName, UserId } from '@etude/contracts/ids';
import type { WantedSkill } from '@etude/contracts/skill-proof';
import { findSkill } from '@etude/domain/skills/life/find-skill';
import { requireName } from '@etude/domain/skills/life/register-skill';
import { hasRole, type Role } from '@etude/platform/auth';
import { WantedSkills } from '@etude/queue/agents/wanted-skills';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { MemoryAccess } from '../memory/memory-access.js';
import { ownScope } from '../memory/memory-scope.js';
import { timestampAt } from '../wire/duration.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { optionalAgent, optionalRequestId } from '../wire/resource-name.js';
import { boundedCount, invalidField, parseField } from '../wire/validation.js';
import { ToolServices } from '../tools/tool-services.js';

const PAGE = { max: 200, standard: 50 };
const Description = z.string().trim().max(4_000);
const Reason = z.string().trim().max(1_000);
const WishName = z.string().regex(/^wantedSkills\/w[0-9a-f]{8,64}$/, 'must look like "wantedSkills/w0192f0c8a1b2"');
/** Of an example, as JSON. */
const EXAMPLE_MAX_CHARS = 16_000;

/** Skills that somebody misses, and what became of them: `etude.v1.Skills`. */
@Controller()
export class WantedSkillsController implements Pick<
  GrpcController<typeof Skills>,
  'requestSkill' | 'getWantedSkill' | 'listWantedSkills' | 'withdrawWantedSkill'
> {
  constructor(
    private readonly wanted: WantedSkills,
    private readonly tools: ToolServices,
    private readonly memory: MemoryAccess,
  ) {}

  @GrpcMethod('Skills')
  async requestSkill(request: RequestSkillRequest, _metadata: Metadata, call: ServerCall) {
    const reader = ownScope(call, request);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const name = parseField(SkillName, request.name.replace(/^skills\//, ''), 'name');
    requireName(name);
    const description = parseField(Description, request.description, 'description');
    const example = request.example ?? null;
    if (JSON.stringify(example).length > EXAMPLE_MAX_CHARS)
      throw invalidField('example', `must not have more than ${EXAMPLE_MAX_CHARS} characters as JSON`);
    const { procedural } = await this.memory.open();
    if (await findSkill(procedural, reader, name))
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `There is an active skill "${name}" for this reader already; use it, or register another version.`,
        {
          metadata: { name: skillResourceName(name) },
        },
      );
    const { roles, name: by } = contextOf(call);
    const origin = hasRole(roles, 'reviewer') ? { vouchedBy: by, requestId } : { requestId };
    return wantedMessage(await this.tools.wishes.requestSkill(reader, { name, description, example }, origin));
  }

  @GrpcMethod('Skills')
  async getWantedSkill(request: GetWantedSkillRequest, _metadata: Metadata, call: ServerCall) {
    return wantedMessage(await this.#seen(request, call));
  }

  @GrpcMethod('Skills')
  async withdrawWantedSkill(request: WithdrawWantedSkillRequest, _metadata: Metadata, call: ServerCall) {
    const reason = parseField(Reason, request.reason, 'reason');
    const { tenant, id } = await this.#seen(request, call);
    return wantedMessage(await this.wanted.withdraw(tenant, id, reason));
  }

  @GrpcMethod('Skills')
  async listWantedSkills(request: ListWantedSkillsRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant, roles } = contextOf(call);
    const limit = boundedCount(request.pageSize, 'page_size', PAGE);
    const agent = optionalAgent(request.agent);
    const user = wishUserOf(request, roles);
    const bound = ['ListWantedSkills', tenant, agent, user ?? null, user === undefined];
    const after = afterPageToken(request.pageToken, bound);
    const { wishes, nextAfter } = await this.wanted.list(tenant, { limit, after, agent, ...(user === undefined ? {} : { user }) });
    return { wantedSkills: wishes.map(wantedMessage), nextPageToken: pageToken(nextAfter, bound) };
  }

  /** As the skill would be seen that comes of it: a user's by that user, nobody's in particular by all. @throws EtudeError NOT_FOUND */
  async #seen(request: { readonly name: string; readonly user: string }, call: ServerCall): Promise<WantedSkill> {
    const { tenant, roles } = contextOf(call);
    const { name } = request;
    const id = parseField(WishName, name, 'name').slice('wantedSkills/'.length);
    const user = wishUserOf(request, roles);
    const wanted = await this.wanted.get(tenant, id);
    if (wanted !== null && (user === undefined || wanted.user === null || wanted.user === user)) return wanted;
    throw new EtudeError('NOT_FOUND', `There is no ${name} for this reader. A user's wish is seen by who names the user.`, {
      metadata: { name },
    });
  }
}

/** undefined: every user's, for reviewers who name none; null: nobody's in particular. */
function wishUserOf({ user }: { readonly user: string }, roles: readonly Role[]): string | null | undefined {
  if (user !== '') return parseField(UserId, user, 'user');
  return hasRole(roles, 'reviewer') ? undefined : null;
}

export function wantedMessage(wanted: WantedSkill): MessageInitShape<typeof WantedSkillSchema> {
  const { id, skill, description, agent, user, state, reason, priority, asked, registered, scripted, createdAt, updatedAt } = wanted;
  return {
    name: `wantedSkills/${id}`,
    skill: skillResourceName(skill),
    description,
    agent,
    user: user ?? '',
    state,
    reason,
    priority,
    asked,
    scripted,
    registeredSkill: registered === null ? '' : skillResourceName(registered),
    createTime: timestampAt(createdAt),
    updateTime: timestampAt(updatedAt),
  };
}
