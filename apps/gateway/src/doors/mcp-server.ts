import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { SERVICES } from '@etude/contracts/grpc';
import { isLoopback } from '@etude/contracts/outside-tools';
import type { McpHttp } from '@etude/mcp/http';
import { refuseHttp } from '@etude/mcp/refuse-http';
import { counter, histogram } from '@etude/platform/metrics';
import type { ServerTls } from '@etude/platform/tls';
import type { Authenticator } from '../calls/caller.js';
import { type Calls, MIB } from '../calls/calls.js';
import { localClient } from '../calls/local-client.js';
import type { GatewayConfig } from '../config/gateway-config.js';
import { httpDoor, keyOf } from './http-door.js';
import { jsonOf } from './rest-request.js';

const PATH = '/mcp';

const requests = counter({ name: 'etude_mcp_requests_total', help: 'Answered MCP requests by HTTP status', labels: ['status'] });
const seconds = histogram({ name: 'etude_mcp_request_seconds', help: 'How long MCP requests took, streams included' });

interface McpDoorParts {
  readonly calls: Calls;
  readonly authenticator: Authenticator;
  readonly log: (message: string, details: object) => void;
  readonly tls: ServerTls | null;
}

/**
 * MCP over streamable HTTP. Requests become calls of the same handlers as over gRPC, with the caller's key.
 * It keeps no state, so any gateway can answer any request.
 */
export function mcpDoor(config: GatewayConfig, { calls, authenticator, log, tls }: McpDoorParts) {
  const refusal = refuser(config);
  let opened: Promise<McpHttp> | null = null;
  /** The first request imports the protocol's package, because it costs 20 MiB of memory. */
  const open = async (): Promise<McpHttp> => {
    const { createMcpHttp } = await import('@etude/mcp/http');
    return createMcpHttp(
      { tools: localClient(calls, SERVICES.tools), skills: localClient(calls, SERVICES.skills) },
      {
        version,
        onError: (error) => log('An MCP request was refused or failed', { err: error }),
        onUnfit: (skill, why) => log('A skill does not fit the Agent Skills format and is not shown over MCP', { skill, why }),
      },
    );
  };
  return httpDoor({
    setting: 'ETUDE_MCP_PORT',
    tls,
    async answer(request, response) {
      const stop = seconds.startTimer();
      response.once('close', () => {
        stop();
        requests.inc({ status: response.statusCode });
      });
      const refused = refusal(request.headers);
      if (refused !== null) return refuseHttp(response, 403, refused);
      const { pathname } = new URL(request.url ?? '/', 'http://gateway');
      if (pathname !== PATH) return refuseHttp(response, 404, `There is no ${pathname}; MCP is at ${PATH}.`);
      if (request.method !== 'POST') {
        response.setHeader('allow', 'POST');
        return refuseHttp(response, 405, 'Use POST: this server keeps no sessions and opens a stream only as the answer to a request.');
      }
      const { authorization } = await keyOf(request, authenticator);
      const unwatch = authenticator.watch([authorization], () => response.destroy());
      response.once('close', unwatch);
      if (response.closed) return unwatch();
      const mcp = await (opened ??= open());
      return mcp.handle(request, response, await jsonOf(request, 4 * MIB));
    },
    fail(response, { status, error }, cause) {
      if (status === 500) log('An MCP request failed', { err: cause });
      refuseHttp(response, status, error.message);
    },
    cut: async () => (await opened)?.close(),
  });
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Returns the reason to refuse a request; null: accepted. A web page can send requests to servers on its visitor's machine, even under the
 * page's own host name (DNS rebinding). But browsers always send the page's Origin and the host name that they called.
 */
function refuser({ ETUDE_MCP_HOST: host, ETUDE_MCP_ALLOWED_HOSTS: hosts, ETUDE_MCP_ALLOWED_ORIGINS: origins }: GatewayConfig) {
  const names = [...(isLoopback(host) ? LOOPBACK_NAMES : []), ...hosts.map((name) => name.toLowerCase())];
  return (asked: IncomingHttpHeaders): string | null => {
    if (asked.origin !== undefined && !origins.includes(asked.origin))
      return 'This server does not answer this website. Add the origin of the website to ETUDE_MCP_ALLOWED_ORIGINS.';
    const name = (asked.host ?? '').replace(/:\d+$/, '').toLowerCase();
    // On other addresses than loopback, the network decides the names. A key is required anyway.
    if (names.length === 0 || names.includes(name)) return null;
    return 'This server does not answer under this host name. Add the name to ETUDE_MCP_ALLOWED_HOSTS.';
  };
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string };
