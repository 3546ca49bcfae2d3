import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { type GatewayCalls, openGatewayCalls } from '@etude/mcp/gateway-calls';
import { createMcpHttp, type McpHttp, refuseHttp } from '@etude/mcp/http';
import { listenOn } from '@etude/platform/health';
import { counter, histogram } from '@etude/platform/metrics';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Authenticator } from '../calls/authenticator.js';
import { type BodyLimits, BodyReader } from '../rest/body-reader.js';
import { restError } from '../rest/rest-error.js';
import { isJson, messageOf } from './mcp-body.js';
import type { McpDoor } from './mcp-door.js';

const PATH = '/mcp';
const BODY_MAX_BYTES = 4 * 1024 * 1024;
const BODIES: BodyLimits = { readingMax: 8, idleMs: 30_000 };
/** How long what is left of a refused body is read and dropped, so that its sender gets to read the refusal. */
const REFUSED_BODY_MS = 5_000;
/** A client that takes nothing of what is there of its answer for so long is cut off. */
const STALLED_MS = 60_000;
/** For a request to come in. */
const REQUEST_TIMEOUT_MS = 120_000;
const CONNECTIONS_MAX = 2_048;
const SUBSCRIPTIONS_MAX = 512;
const CLOSE_GRACE_MS = 3_000;
const PARSE_ERROR = -32_700;

const requests = counter({ name: 'etude_mcp_requests_total', help: 'Answered MCP requests by HTTP status', labels: ['status'] });
const seconds = histogram({ name: 'etude_mcp_request_seconds', help: 'How long MCP requests took, streams included' });

export interface McpServerParts {
  /** "host:port" of this gateway's own gRPC server. */
  readonly address: string;
  readonly authenticator: Pick<Authenticator, 'identify'>;
  readonly door: McpDoor;
  readonly version: string;
  readonly log: (message: string, details: object) => void;
  readonly bodies?: BodyLimits;
  readonly stalledMs?: number;
}

/**
 * MCP over streamable HTTP. Every request becomes calls on this gateway's own gRPC port, with the caller's key, so keys, roles and limits are
 * those of gRPC. Nothing is kept between requests: any gateway answers any of them.
 */
export class McpServer implements OnModuleDestroy {
  readonly #calls: GatewayCalls & { close(): void };
  readonly #mcp: McpHttp;
  readonly #server: Server;
  readonly #parts: McpServerParts;
  readonly #bodies: BodyReader;

  constructor(parts: McpServerParts) {
    this.#parts = parts;
    this.#bodies = new BodyReader(parts.bodies ?? BODIES);
    this.#calls = openGatewayCalls(parts.address);
    this.#mcp = createMcpHttp(this.#calls, {
      version: parts.version,
      subscriptionsMax: SUBSCRIPTIONS_MAX,
      onError: (error) => parts.log('An MCP request was refused or failed', { err: error }),
      onUnfit: (skill, why) => parts.log('A skill does not fit the Agent Skills format and is not shown over MCP', { skill, why }),
    });
    this.#server = createServer((request, response) => this.#serve(request, response));
    this.#server.headersTimeout = 10_000;
    this.#server.requestTimeout = REQUEST_TIMEOUT_MS;
    this.#server.maxConnections = CONNECTIONS_MAX;
  }

  /** @throws EtudeError FAILED_PRECONDITION where the port is taken */
  async listen(host: string, port: number): Promise<void> {
    await listenOn(this.#server, { host, port, setting: 'ETUDE_MCP_PORT' });
  }

  /** What is running gets a grace; then it is cut, streams of changes with it. */
  async onModuleDestroy(): Promise<void> {
    if (!this.#server.listening) return this.#calls.close();
    this.#server.close();
    this.#server.closeIdleConnections();
    await Promise.race([once(this.#server, 'close'), new Promise((resolve) => setTimeout(resolve, CLOSE_GRACE_MS).unref())]);
    await this.#mcp.close();
    this.#server.closeAllConnections();
    this.#calls.close();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const stop = seconds.startTimer();
    response.once('close', () => {
      stop();
      requests.inc({ status: response.statusCode });
    });
    response.once('finish', () => dropRest(request));
    response.setTimeout(this.#parts.stalledMs ?? STALLED_MS, () => cutStalled(response));
    this.#answer(request, response).catch((error: unknown) => this.#fail(response, error));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refused = this.#parts.door.refusal(request.headers);
    if (refused !== null) return refuseHttp(response, 403, refused);
    const pathname = URL.parse(request.url ?? '/', 'http://gateway')?.pathname;
    if (pathname === undefined) return refuseHttp(response, 400, `The request target is no path; MCP is at ${PATH}.`);
    if (pathname !== PATH) return refuseHttp(response, 404, `There is no ${pathname}; MCP is at ${PATH}.`);
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST');
      return refuseHttp(response, 405, 'Use POST: this server keeps no sessions, and opens streams as answers to requests.');
    }
    const { authorization } = request.headers;
    if (!authorization) throw new EtudeError('UNAUTHENTICATED', 'Send a key: authorization: Bearer <key>.');
    // Before a byte of the body is read. The calls ask again, and for roles.
    this.#parts.authenticator.identify([authorization]);
    // Another type could be sent by any page that a browser shows.
    if (!isJson(request)) return refuseHttp(response, 415, 'Send one JSON message, with content-type: application/json.');
    const read = messageOf(await this.#bodies.whole(request, BODY_MAX_BYTES));
    if ('message' in read) return this.#mcp.handle(request, response, read.message);
    const { id, error } = read.refusal ?? { id: null, error: { code: undefined } };
    refuseHttp(response, 400, read.why, error.code, id);
  }

  #fail(response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const { status, retryAfterMs, body } = restError(error);
    if (status === 500) this.#parts.log('An MCP request failed', { err: error });
    if (retryAfterMs !== undefined) response.setHeader('retry-after', String(Math.ceil(retryAfterMs / 1_000)));
    if (status === 401) response.setHeader('www-authenticate', 'Bearer');
    refuseHttp(response, status, body.error.message, errorCode(error) === 'INVALID_ARGUMENT' ? PARSE_ERROR : undefined);
  }
}

/** Silence alone is no fault: a tool may run for long. */
function cutStalled(response: ServerResponse): void {
  const waiting = response.writableLength + (response.socket?.writableLength ?? 0);
  if (waiting > 0) response.destroy();
}

/** Whoever refuses a body has not read it. A sender that goes on for long is cut off. */
function dropRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  const timer = setTimeout(() => request.destroy(), REFUSED_BODY_MS);
  request.once('close', () => clearTimeout(timer));
  request.resume();
}
