import { randomUUID } from 'node:crypto';
import { ToolDefinitionSchema, type Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { AgentId } from '@etude/contracts/ids';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { ToolRegistry } from '@etude/domain/tools/agent-tools';
import { NO_SESSION } from '@etude/domain/tools/execute-in-session';
import type { ToolDefinition } from '@etude/domain/tools/tool-definition';
import type { RepeatableCall } from '@etude/queue/agents/tool-sessions';
import { z } from 'zod';
import { requireUnbound } from '../calls/roles.js';
import type { Handlers } from '../calls/calls.js';
import { outcomeMessage, plainJson } from '../wire/outcomes.js';
import { ownScope } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { toWire } from '@etude/contracts/wire/messages';
import { optionalRequestId } from '../wire/names.js';
import { parseField } from '@etude/contracts/wire/validation';

const Session = z.string().regex(/^[A-Za-z0-9_-]{0,64}$/, 'must hold only letters, digits, "_" and "-", at most 64');
const ToolName = z.string().min(1).max(128);

interface ToolDeps extends Pick<SkillDeps, 'settings' | 'toolCalls'> {
  readonly registry: ToolRegistry;
}

/** `etude.v1.Tools`: one registry for all agents. The key and the request identify the caller; the arguments don't. */
export const toolCalls = {
  async listTools(request, call, deps) {
    const { tenant } = call;
    const { settings } = await deps.settings.get(tenant, parseField(AgentId, request.agent, 'agent'));
    return { tools: deps.registry.listed.map((tool) => toolMessage(tool, settings)) };
  },

  async callTool(request, call, deps) {
    const reader = ownScope(call, request);
    const tool = parseField(ToolName, request.tool, 'tool');
    const session = parseField(Session, request.session, 'session') || NO_SESSION;
    const requestId = optionalRequestId(request.requestId);
    const { toolCalls: calls } = deps;
    const args = request.arguments ?? {};
    // Worlds have no user.
    if (args['world'] !== undefined) requireUnbound(call);
    // Calls that change nothing can simply run again.
    const repeatable = requestId === null || deps.registry.isRead(tool) ? null : { ...reader, requestId, content: { tool, args, session } };
    const first = repeatable && (await calls.answered(repeatable));
    if (first) return outcomeMessage(first);
    const { settings } = await deps.settings.get(reader.tenant, reader.agent);
    const isBound = call.user !== undefined;
    const caller = { ...reader, session, isBound, callId: callIdOf(repeatable), by: call.name, settings };
    const outcome = await deps.registry.call(tool, args, caller, call.signal);
    if (repeatable) await calls.keep(repeatable, outcome);
    return outcomeMessage(outcome);
  },
} satisfies Handlers<typeof Tools, ToolDeps>;

/** Repeats of a request get the same id, so that they start no second execution. */
const callIdOf = (call: RepeatableCall | null): string => (call === null ? randomUUID() : contentDigest(call));

function toolMessage(tool: ToolDefinition, settings: ProceduralMemorySettings) {
  const schemas = { inputSchema: plainJson(tool.inputSchema), outputSchema: plainJson(tool.outputSchema) };
  return toWire(ToolDefinitionSchema, { ...tool, ...schemas, description: tool.describe(settings) });
}
