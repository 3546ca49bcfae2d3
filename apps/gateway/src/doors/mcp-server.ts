import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { EtudeError } from '@etude/contracts/errors';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { createMcpHttp, type McpHttp, refuseHttp } from '@etude/mcp/http';
import { readMessage, type ReadMessage } from '@etude/mcp/messages';
import { counter, histogram } from '@etude/platform/metrics';
import { z } from 'zod';
import type { Authenticator } from '../calls/caller.js';
import type { Calls } from '../calls/calls.js';
import { localClient } from '../calls/local-client.js';
import { type GatewayConfig, isLoopback } from '../config/gateway-config.js';
import { type BodyLimits, BodyReader, isDeeperThan } from './body-reader.js';
import { HttpDoor, keyOf, mediaTypeOf, type RestError } from './http-door.js';
import { textOf } from './rest-request.js';

const PATH = '/mcp';
const BODY_MAX_BYTES = 4 * 1024 * 1024;
const BODIES: BodyLimits = { readingMax: 8, idleMs: 30_000 };
/** A client that takes nothing of what is there of its answer for so long is cut off. */
const STALLED_MS = 60_000;
/** For a request to come in. */
const REQUEST_TIMEOUT_MS = 120_000;
const CONNECTIONS_MAX = 2_048;
const SUBSCRIPTIONS_MAX = 512;
const PARSE_ERROR = -32_700;

const requests = counter({ name: 'etude_mcp_requests_total', help: 'Answered MCP requests by HTTP status', labels: ['status'] });
const seconds = histogram({ name: 'etude_mcp_request_seconds', help: 'How long MCP requests took, streams included' });

export interface McpServerParts {
  readonly calls: Calls;
  readonly authenticator: Pick<Authenticator, 'identify'>;
  readonly door: McpDoorSettings;
  readonly version: string;
  readonly log: (message: string, details: object) => void;
  readonly bodies?: BodyLimits;
  readonly stalledMs?: number;
}

/**
 * MCP over streamable HTTP. Every request becomes calls of the same handlers as over gRPC, with the caller's key. Nothing is kept between
 * requests: any gateway answers any of them.
 */
export class McpServer {
  readonly #mcp: McpHttp;
  readonly #http: HttpDoor;
  readonly #door: McpDoor;
  readonly #parts: McpServerParts;
  readonly #bodies: BodyReader;

  constructor(parts: McpServerParts) {
    this.#parts = parts;
    this.#door = new McpDoor(parts.door);
    this.#bodies = new BodyReader(parts.bodies ?? BODIES);
    const gateway = { tools: localClient(parts.calls, Tools), skills: localClient(parts.calls, Skills) };
    this.#mcp = createMcpHttp(gateway, {
      version: parts.version,
      subscriptionsMax: SUBSCRIPTIONS_MAX,
      onError: (error) => parts.log('An MCP request was refused or failed', { err: error }),
      onUnfit: (skill, why) => parts.log('A skill does not fit the Agent Skills format and is not shown over MCP', { skill, why }),
    });
    this.#http = new HttpDoor({
      setting: 'ETUDE_MCP_PORT',
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      connectionsMax: CONNECTIONS_MAX,
      answer: (request, response) => this.#serve(request, response),
      fail: (response, error, cause) => this.#fail(response, error, cause),
    });
  }

  listen(host: string, port: number): Promise<void> {
    return this.#http.listen(host, port);
  }

  /** Streams of changes end behind the grace of other requests. */
  close(): Promise<void> {
    return this.#http.close(() => this.#mcp.close());
  }

  #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const stop = seconds.startTimer();
    response.once('close', () => {
      stop();
      requests.inc({ status: response.statusCode });
    });
    response.setTimeout(this.#parts.stalledMs ?? STALLED_MS, () => cutStalled(response));
    return this.#answer(request, response);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refused = this.#door.refusal(request.headers);
    if (refused !== null) return refuseHttp(response, 403, refused);
    const pathname = URL.parse(request.url ?? '/', 'http://gateway')?.pathname;
    if (pathname === undefined) return refuseHttp(response, 400, `The request target is no path; MCP is at ${PATH}.`);
    if (pathname !== PATH) return refuseHttp(response, 404, `There is no ${pathname}; MCP is at ${PATH}.`);
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST');
      return refuseHttp(response, 405, 'Use POST: this server keeps no sessions, and opens streams as answers to requests.');
    }
    keyOf(request, this.#parts.authenticator);
    // Another type could be sent by any page that a browser shows.
    if (mediaTypeOf(request) !== 'application/json')
      return refuseHttp(response, 415, 'Send one JSON message, with content-type: application/json.');
    const read = messageOf(await this.#bodies.whole(request, BODY_MAX_BYTES));
    if ('message' in read) return this.#mcp.handle(request, response, read.message);
    const { id, error } = read.refusal ?? { id: null, error: { code: undefined } };
    refuseHttp(response, 400, read.why, error.code, id);
  }

  #fail(response: ServerResponse, { status, body }: RestError, cause: unknown): void {
    if (status === 500) this.#parts.log('An MCP request failed', { err: cause });
    refuseHttp(response, status, body.error.message, body.error.code === 'INVALID_ARGUMENT' ? PARSE_ERROR : undefined);
  }
}

/** Silence alone is no fault: a tool may run for long. */
function cutStalled(response: ServerResponse): void {
  const waiting = response.writableLength + (response.socket?.writableLength ?? 0);
  if (waiting > 0) response.destroy();
}

/** Of lists and objects in a message; what tools take goes no deeper. */
const NESTING_MAX = 100;

/** @throws EtudeError INVALID_ARGUMENT for what is no UTF-8 or nested too deep */
export function messageOf(body: Buffer): ReadMessage {
  const text = textOf(body);
  if (isDeeperThan(text, NESTING_MAX)) {
    throw new EtudeError('INVALID_ARGUMENT', `The message is nested deeper than ${NESTING_MAX} lists and objects; make it flatter.`);
  }
  return readMessage(text);
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** "host" without its port; IPv6 stays in brackets. Null for what is no host. */
function hostnameOf(host: string): string | null {
  const url = /[\s/?#@\\]/.test(host) ? null : URL.parse(`http://${host}`);
  return url === null || url.hostname === '' ? null : url.hostname;
}

export interface McpDoorSettings {
  /** What the server listens on. */
  readonly host: string;
  /** Names that clients may call it by, without ports, besides those of loopback where it listens there. */
  readonly hosts: readonly string[];
  /** Origins of websites whose requests are answered: "https://console.example.org". */
  readonly origins: readonly string[];
}

/**
 * Which requests come in at all. A page in somebody's browser reaches servers of that machine, also under a name of its own that it lets
 * point there; it can't hide its Origin, nor the name that it used.
 */
export class McpDoor {
  readonly #hosts: ReadonlySet<string> | null;
  readonly #origins: ReadonlySet<string>;

  constructor({ host, hosts, origins }: McpDoorSettings) {
    const local = isLoopback(host) ? LOOPBACK_NAMES : [];
    // On other addresses names are whatever the network gives it; a key is needed all the same.
    this.#hosts = local.length + hosts.length === 0 ? null : new Set([...local, ...hosts.map((name) => name.toLowerCase())]);
    this.#origins = new Set(origins);
  }

  /** Why a request is refused; null: it is not. */
  refusal({ host = '', origin }: IncomingHttpHeaders): string | null {
    if (origin !== undefined && !this.#origins.has(origin)) {
      return 'This server answers no websites. ETUDE_MCP_ALLOWED_ORIGINS names those that it should.';
    }
    const name = hostnameOf(host);
    if (name === null || (this.#hosts !== null && !this.#hosts.has(name))) {
      return 'This server is not called by that name. ETUDE_MCP_ALLOWED_HOSTS names those that it should answer to.';
    }
    return null;
  }
}

const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));

/** As the settings say; it listens once it is told to. */
export function mcpServerFrom(config: GatewayConfig, calls: Calls, authenticator: Authenticator, log: McpServerParts['log']): McpServer {
  const { ETUDE_MCP_HOST: host, ETUDE_MCP_ALLOWED_HOSTS: hosts, ETUDE_MCP_ALLOWED_ORIGINS: origins } = config;
  return new McpServer({ calls, authenticator, door: { host, hosts, origins }, version, log });
}
