import { EtudeError } from '@etude/contracts/errors';
import type { ApproveSkillRequest, GetSkillRequest, ListSkillsRequest, Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { approveSkill } from '@etude/domain/skills/approve';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { MemoryAccess } from '../memory/memory-access.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { optionalAgent, optionalRequestId, skillOfName } from '../wire/resource-name.js';
import { boundedCount, parseField } from '../wire/validation.js';
import { skillMessage, statusFilterOf } from './skill.mapping.js';

const PAGE = { max: 1_000, standard: 50 };
const Digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be the digest of the skill that was reviewed: 64 hexadecimal digits');

/** `etude.v1.Skills`, read from memory directly; approving is the one thing that it changes. */
@Controller()
export class SkillsController implements Pick<GrpcController<typeof Skills>, 'listSkills' | 'getSkill' | 'approveSkill'> {
  constructor(private readonly memory: MemoryAccess) {}

  @GrpcMethod('Skills')
  async listSkills(request: ListSkillsRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const agent = optionalAgent(request.agent);
    const status = statusFilterOf(request.status);
    const bound = ['ListSkills', tenant, agent, status];
    const after = afterPageToken(request.pageToken, bound);
    const [afterName, afterAgent] = after?.split('/') ?? [];
    const { procedural } = await this.memory.open();
    // One more than asked for tells whether a page follows.
    const found = await procedural.list({ tenant, agent }, { status, limit: pageSize + 1, afterName, afterAgent });
    const page = found.slice(0, pageSize);
    const last = found.length > pageSize ? page.at(-1) : undefined;
    const next = last ? `${last.name}/${last.scope.agent}` : null;
    return { skills: page.map(skillMessage), nextPageToken: pageToken(isBehind(next, after) ? next : null, bound) };
  }

  @GrpcMethod('Skills')
  async getSkill({ name }: GetSkillRequest, _metadata: Metadata, call: ServerCall) {
    const skillName = skillOfName(name);
    const { procedural } = await this.memory.open();
    const skill = await procedural.get({ tenant: contextOf(call).tenant, agent: null }, skillName);
    if (!skill) throw new EtudeError('NOT_FOUND', `There is no ${name}.`, { metadata: { name } });
    return skillMessage(skill);
  }

  @GrpcMethod('Skills')
  async approveSkill(request: ApproveSkillRequest, _metadata: Metadata, call: ServerCall) {
    optionalRequestId(request.requestId);
    const name = skillOfName(request.name);
    const digest = parseField(Digest, request.digest, 'digest');
    const { tenant } = contextOf(call);
    const { procedural } = await this.memory.open();
    return skillMessage(await approveSkill({ tenant, agent: null }, { name, digest, by: tenant }, procedural, Date.now()));
  }
}

/** Names go up from page to page. One that does not, of a damaged record, ends the list, which would begin again else. */
function isBehind(next: string | null, after: string | null): boolean {
  return next === null || after === null || keyOf(next) > keyOf(after);
}

/** In the order in which skills are kept, where a name sorts before a longer one. */
const keyOf = (place: string) => place.replace('/', ' ');
