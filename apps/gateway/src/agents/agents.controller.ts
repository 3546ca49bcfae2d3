import type { Agents, GetAgentRequest, ListAgentsRequest, UpdateAgentRequest } from '@etude/contracts/gen/etude/v1/agents_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { contextOf } from '../calls/call-context.js';
import { NeedsRole } from '../calls/call.guard.js';
import { claimOnce, once } from '../calls/claimed-request.js';
import { MemoryAccess } from '../memory/memory-access.js';
import { afterPageToken, pageToken } from '../wire/page-token.js';
import { agentOfName, optionalRequestId } from '../wire/resource-name.js';
import { boundedCount, invalidField } from '../wire/validation.js';
import { agentMessage, settingsChange } from './agent.mapping.js';

const PAGE = { max: 1_000, standard: 50 };

/** `etude.v1.Agents`: settings of agents. */
@Controller()
export class AgentsController implements GrpcController<typeof Agents> {
  constructor(
    private readonly settings: AgentSettingsStore,
    private readonly memory: MemoryAccess,
  ) {}

  @GrpcMethod('Agents')
  async listAgents(request: ListAgentsRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const bound = ['ListAgents', tenant];
    const after = afterPageToken(request.pageToken, bound) ?? '';
    const found = await this.settings.list(tenant, { limit: pageSize + 1, after });
    const page = found.slice(0, pageSize);
    const last = found.length > pageSize ? page.at(-1) : undefined;
    return { agents: page.map(agentMessage), nextPageToken: pageToken(last?.agent ?? null, bound) };
  }

  @GrpcMethod('Agents')
  async getAgent({ name }: GetAgentRequest, _metadata: Metadata, call: ServerCall) {
    const agent = agentOfName(name);
    return agentMessage(await this.settings.get(contextOf(call).tenant, agent));
  }

  @GrpcMethod('Agents')
  @NeedsRole('reviewer')
  async updateAgent({ agent: told, updateMask, requestId }: UpdateAgentRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    if (told === undefined) throw invalidField('agent', 'is required');
    const agent = agentOfName(told.name, 'agent.name');
    const change = settingsChange(told, updateMask?.paths ?? []);
    const etag = told.etag === '' ? undefined : told.etag;
    const key = optionalRequestId(requestId);
    if (key === null) return agentMessage(await this.settings.update(tenant, agent, change, { etag }));
    const request = { tenant, requestId, method: 'UpdateAgent', body: { agent, change, etag } };
    const claimed = await claimOnce(await this.memory.open(), request, { scope: { agent, user: null } });
    const updated = await once(claimed, {
      act: () => this.settings.update(tenant, agent, change, { etag, requestId: key }),
      resultOf: () => '',
      again: () => this.settings.get(tenant, agent),
    });
    return agentMessage(updated);
  }
}
