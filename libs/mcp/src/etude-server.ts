import { McpServer } from '@modelcontextprotocol/server';
import { SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import type { McpCaller } from './caller.js';
import type { GatewayCalls } from './gateway-calls.js';
import { GatewaySkillSource, type OnUnfit } from './skill-source.js';
import { serveTools } from './tools.js';

const INSTRUCTIONS = [
  'Etude runs Python in a sandbox without network and keeps what works as skills: verified code with a contract.',
  'Before you write code, look for a skill with `search` and run it with `use_skill`, which needs no model.',
  'Explore with `execute_code`; register what works with `register_skill`, with its tests.',
  '`use_skill` requests a missing skill by itself; search for the skill again later.',
].join(' ');

/** How long a client may cache a listing. Short, because skills change while agents work. */
const SKILLS_TTL_MS = 5_000;
const TOOLS_TTL_MS = 300_000;

export interface EtudeServerOptions {
  /** Version of the serving program. */
  readonly version: string;
  readonly onUnfit: OnUnfit;
  /** Interval of progress notifications, in ms, for clients that ask for them. */
  readonly progressEveryMs?: number;
}

/** One MCP server for one caller. It has no state, so making one per request is cheap. */
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
