import { randomUUID } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { CallToolRequest, ListToolsRequest, Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { AgentId } from '@etude/contracts/ids';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { NO_SESSION } from '@etude/domain/tools/execute-in-session';
import type { ToolOutcome } from '@etude/domain/tools/tool-definition';
import type { RepeatableCall } from '@etude/queue/agents/tool-sessions';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { ownScope } from '../memory/memory-scope.js';
import { optionalRequestId } from '../wire/resource-name.js';
import { parseField } from '../wire/validation.js';
import { outcomeMessage, toolMessage } from './tool-definition.mapping.js';
import { ToolServices } from './tool-services.js';

const Session = z.string().regex(/^[A-Za-z0-9_-]{0,64}$/, 'must hold only letters, digits, "_" and "-", at most 64');
const ToolName = z.string().min(1).max(128);
/** Of the arguments of a call, as JSON. */
const ARGUMENTS_MAX_CHARS = 1_048_576;

/** `etude.v1.Tools`: one registry for every agent; whose call it is comes from the key and the request, never from arguments. */
@Controller()
export class ToolsController implements GrpcController<typeof Tools> {
  constructor(private readonly tools: ToolServices) {}

  @GrpcMethod('Tools')
  async listTools(request: ListToolsRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    const { settings } = await this.tools.settings.get(tenant, parseField(AgentId, request.agent, 'agent'));
    return { tools: this.tools.registry.list().map((tool) => toolMessage(tool, settings)) };
  }

  @GrpcMethod('Tools')
  async callTool(request: CallToolRequest, _metadata: Metadata, call: ServerCall) {
    const reader = ownScope(call, request);
    const tool = parseField(ToolName, request.tool, 'tool');
    const session = parseField(Session, request.session, 'session') || NO_SESSION;
    const requestId = optionalRequestId(request.requestId);
    const { calls } = this.tools;
    await calls.note(reader.tenant, reader.agent);
    const args = checkedArguments(request.arguments);
    // What changes nothing is simply asked again.
    const isRead = this.tools.registry.list().some(({ name, readOnly }) => name === tool && readOnly);
    const repeatable = requestId === null || isRead ? null : { ...reader, requestId, content: { tool, args, session } };
    const first = repeatable && (await calls.answered(repeatable));
    if (first) return outcomeMessage(first);
    const outcome = await this.#call(tool, args, { ...reader, session, callId: callIdOf(repeatable) }, call);
    if (repeatable) await calls.keep(repeatable, outcome);
    return outcomeMessage(outcome);
  }

  async #call(
    tool: string,
    args: unknown,
    caller: { tenant: string; agent: string; user: string | null; session: string; callId: string },
    call: ServerCall,
  ): Promise<ToolOutcome> {
    const { signal, name: by } = contextOf(call);
    const { settings } = await this.tools.settings.get(caller.tenant, caller.agent);
    return this.tools.registry.call(tool, args, { ...caller, by, settings }, signal);
  }
}

/** @throws EtudeError PAYLOAD_TOO_LARGE */
function checkedArguments(args: CallToolRequest['arguments'] = {}) {
  const size = JSON.stringify(args).length;
  if (size <= ARGUMENTS_MAX_CHARS) return args;
  throw new EtudeError(
    'PAYLOAD_TOO_LARGE',
    `The arguments of a tool may have ${ARGUMENTS_MAX_CHARS} characters as JSON; these have ${size}. Send less at once.`,
    { field: 'arguments' },
  );
}

/** The same request has the same id, so that what it began is not begun again. */
const callIdOf = (call: RepeatableCall | null): string => (call === null ? randomUUID() : contentDigest(call));
