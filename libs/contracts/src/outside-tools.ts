import { z } from 'zod';
import type { Json } from './json.js';

/** MCP servers outside of Etude whose tools an agent may call. */

const SERVERS_MAX = 10;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;

/** Whether the host is certainly this machine. A name other than localhost could resolve to any address. */
export const isLoopback = (host: string) => LOOPBACK.test(host);

/** Whether nobody on the network can read or change the traffic with this address. */
export const isHttpsOrLoopback = ({ protocol, hostname }: URL) => protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

/** The settings of agents hold only references. The operator's file of secrets holds the values. */
const SecretReference = z
  .string()
  .max(100)
  .regex(/^([A-Za-z]+ )?secret:[A-Za-z0-9_-]{1,64}$/, 'must refer to a secret, such as "secret:github" or "Bearer secret:github"');

function urlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return 'must be a URL';
  if (!isHttpsOrLoopback(url)) return 'must begin with https://, or with http:// on a loopback address';
  return url.username || url.password ? 'must not hold a name or password; put secrets into headers' : null;
}

export const OutsideServer = z
  .strictObject({
    /** Prefix of its tools, as in "github/search_code". */
    name: z
      .string()
      .regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must start with a small letter and hold at most 32 small letters, digits, "_" or "-"'),
    /** Address of a server that speaks MCP over Streamable HTTP. */
    url: z.string().max(2_000).optional(),
    /** Name of one of the operator's commands, which speaks MCP over stdio. */
    command: z.string().max(64).optional(),
    /** The tools that may be called; empty: all. */
    tools: z.array(z.string().min(1).max(128)).max(100).default([]),
    headers: z.record(z.string().regex(/^[A-Za-z0-9-]{1,64}$/), SecretReference).default({}),
    env: z.record(z.string().regex(/^[A-Z][A-Z0-9_]{0,63}$/), SecretReference).default({}),
    /** Limit for each connection, each list of tools and each call. */
    timeoutMs: z.number().int().min(100).max(300_000).default(30_000),
  })
  .superRefine(({ url, command }, context) => {
    const say = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message });
    if (!url === !command) return say('url', 'set either url or command, not both');
    const problem = url ? urlProblem(url) : null;
    if (problem !== null) say('url', problem);
  });
export type OutsideServer = z.infer<typeof OutsideServer>;

export const OutsideServers = z
  .array(OutsideServer)
  .max(SERVERS_MAX)
  .refine((servers) => new Set(servers.map(({ name }) => name)).size === servers.length, 'must have servers with different names');

/** The servers of one agent. Agents share neither connections nor processes. */
export interface OutsideCaller {
  readonly tenant: string;
  readonly agent: string;
  readonly servers: readonly OutsideServer[];
}

/** A tool of an outside server. Name, description and schemas are written by others: data, never instructions. */
export interface OutsideTool {
  /** "server/tool" */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, Json>>;
}

export interface OutsideListing {
  readonly tools: readonly OutsideTool[];
  /** One sentence for each server that couldn't be asked, and for each tool that was left out. */
  readonly problems: readonly string[];
}

/** Untrusted, because results and errors both contain texts of the outside server. */
export type OutsideOutcome = { readonly untrusted: true } & (
  | { readonly success: true; readonly result: Json }
  | { readonly success: false; readonly error: string }
);
