import { type CallToolResult, McpServer, type Server, type ServerContext, type Tool } from '@modelcontextprotocol/server';
import { SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import type { ToolDefinition } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { McpCaller } from './caller.js';
import { callFailure, type GatewayCalls, protocolError } from './gateway-calls.js';
import { GatewaySkillSource, type OnUnfit } from './skill-source.js';

const INSTRUCTIONS = [
  'Etude runs Python in a sandbox without network and keeps what works as skills: verified code with a contract.',
  'Before you write code, look for a skill with `search` and run it with `use_skill`, which needs no model.',
  'Use `execute_code` to explore. When code works, use `register_skill` to register it together with its tests.',
  '`use_skill` requests a missing skill by itself; search for the skill again later.',
].join(' ');

/** How long a client may cache a listing. Short, because skills change while agents work. */
const SKILLS_TTL_MS = 5_000;
const TOOLS_TTL_MS = 300_000;

export interface EtudeServerOptions {
  readonly version: string;
  readonly onUnfit: OnUnfit;
  /** Interval of progress notifications, in ms, for clients that ask for them. */
  readonly progressEveryMs?: number;
}

/** One MCP server for one caller. It has no state, so a server per request is cheap. */
export function etudeServer(calls: GatewayCalls, caller: McpCaller, { version, onUnfit, progressEveryMs }: EtudeServerOptions): McpServer {
  const mcp = new McpServer(
    { name: 'etude', title: 'Etude', version },
    { instructions: INSTRUCTIONS, cacheHints: { 'tools/list': { ttlMs: TOOLS_TTL_MS, cacheScope: 'private' } } },
  );
  serveTools(mcp.server, calls.tools, caller, progressEveryMs);
  const source = new GatewaySkillSource(calls.skills, caller, onUnfit);
  const onWarning = ({ path, message }: { path: string; message: string }) => onUnfit(path, message);
  new SkillsExtension({ source, cacheHint: { ttlMs: SKILLS_TTL_MS, cacheScope: 'private' }, onWarning }).attach(mcp);
  // Changes of skills are not announced: clients rely on the cache lifetime of their listing.
  mcp.server.registerCapabilities({ resources: { listChanged: false } });
  return mcp;
}

/**
 * Number of tools shown to clients: the first of the gateway's list, sorted by importance. Each tool costs a model tokens on every turn.
 * The other tools can still be called by name.
 */
const TOOLS_MAX = 10;
const LIST_TIMEOUT_MS = 30_000;
/** Limit for a call whose client doesn't give up earlier. */
const CALL_TIMEOUT_MS = 600_000;
const PROGRESS_EVERY_MS = 2_000;

/** Limit of the text copy of a result; larger results are sent in full only as structured content. */
const TEXT_MAX_CHARS = 100_000;

const objectSchema = (schema: object | undefined): Tool['inputSchema'] => ({ ...schema, type: 'object' });

function toolOf({ name, title, description, inputSchema, outputSchema, readOnly, idempotent }: ToolDefinition): Tool {
  return {
    name,
    title,
    description,
    inputSchema: objectSchema(inputSchema),
    outputSchema: objectSchema(outputSchema),
    // Tools run without network, and change only the caller's own skills, todos and sessions.
    annotations: { title, readOnlyHint: readOnly, idempotentHint: idempotent, destructiveHint: false, openWorldHint: false },
  };
}

/** Reports the seconds that a call has taken so far. Clients restart their time-out at each report. */
function reportProgress({ mcpReq }: ServerContext, everyMs: number): () => void {
  const { _meta: meta, notify } = mcpReq;
  const progressToken = meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  const begun = performance.now();
  const timer = setInterval(() => {
    const progress = Math.round((performance.now() - begun) / 10) / 100;
    // If the client has left, its signal ends the call.
    notify({ method: 'notifications/progress', params: { progressToken, progress, message: 'running' } }).catch(() => undefined);
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

const asText = (text: string) => ({ type: 'text' as const, text });

/** The text copy of a result, for clients that ignore structured content. */
function copyOf(result: object) {
  const text = JSON.stringify(result);
  if (text.length <= TEXT_MAX_CHARS) return asText(text);
  const mark = `\n[cut: ${TEXT_MAX_CHARS} of ${text.length} characters; structuredContent holds all of it. Return less, or print a part of it.]`;
  return asText(text.slice(0, TEXT_MAX_CHARS).toWellFormed() + mark);
}

function failed(error: string, result: object = {}): CallToolResult {
  const more = Object.keys(result).length > 0 ? [asText(JSON.stringify(result))] : [];
  return { isError: true, content: [asText(error), ...more] };
}

/** Errors that a model can act on become failed tools; missing or insufficient keys become errors of the protocol. */
function failedCall(error: unknown): CallToolResult {
  const failure = callFailure(error);
  if (failure === null || ['UNAUTHENTICATED', 'PERMISSION_DENIED', 'CANCELLED'].includes(failure.code)) throw protocolError(error);
  return failed(failure.message);
}

function serveTools(server: Server, calls: GatewayCalls['tools'], caller: McpCaller, progressEveryMs = PROGRESS_EVERY_MS): void {
  const { agent, user, session, metadata } = caller;
  server.registerCapabilities({ tools: {} });
  server.setRequestHandler('tools/list', async (_request, { mcpReq }) => {
    const listed = calls.listTools({ agent, user }, { metadata, signal: mcpReq.signal, timeoutMs: LIST_TIMEOUT_MS });
    const { tools } = await listed.catch((error: unknown) => Promise.reject(protocolError(error)));
    return { tools: tools.slice(0, TOOLS_MAX).map(toolOf) };
  });
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const request = { tool: params.name, arguments: (params.arguments ?? {}) as never, agent, user, session };
    const stop = reportProgress(context, progressEveryMs);
    try {
      const settings = { metadata, signal: context.mcpReq.signal, timeoutMs: CALL_TIMEOUT_MS };
      const { success, result, error } = await calls.callTool(request, settings);
      if (!success) return failed(error, result);
      return { content: [copyOf(result ?? {})], structuredContent: result ?? {} };
    } catch (error) {
      return failedCall(error);
    } finally {
      stop();
    }
  });
}
