import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { create, type DescMessage, type Message, toJson } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { portError } from '@etude/platform/health';
import type { OnModuleDestroy } from '@nestjs/common';
import { openApi } from './openapi.js';
import { restError } from './rest-error.js';
import { messageOf, readJson, readText } from './rest-request.js';
import { type Match, matchRoute } from './routes.js';

const TIMEOUT_MS = 60_000;
/** Of calls that read or write much. */
const LONG_TIMEOUT_MS = 600_000;
const LINES_PART_BYTES = 1024 * 1024;

type AnyCall = (request: unknown, settings: object) => unknown;

/**
 * `etude.v1` as JSON over HTTP: every request becomes a call on this gateway's own gRPC port, with the caller's key. So keys, checks,
 * errors and limits are those of gRPC, and there is nothing here that could differ.
 */
export class RestServer implements OnModuleDestroy {
  readonly #calls: Readonly<Record<string, AnyCall>> & { close(): void };
  readonly #server: Server;

  /** @param address of the gRPC server, "host:port" */
  constructor(address: string) {
    this.#calls = createServiceClient(Memory, address) as never;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => fail(response, error));
    });
    this.#server.headersTimeout = 10_000;
    this.#server.requestTimeout = LONG_TIMEOUT_MS;
  }

  /** @throws EtudeError FAILED_PRECONDITION where the port is taken */
  async listen(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(portError(error, host, port, 'ETUDE_REST_PORT')));
      this.#server.listen(port, host, resolve);
    });
  }

  async onModuleDestroy(): Promise<void> {
    if (!this.#server.listening) return this.#calls.close();
    this.#server.close();
    this.#server.closeIdleConnections();
    await Promise.race([once(this.#server, 'close'), new Promise((resolve) => setTimeout(resolve, 3_000).unref())]);
    this.#server.closeAllConnections();
    this.#calls.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://gateway');
    if (request.method === 'GET' && url.pathname === '/openapi.json') return sendJson(response, 200, openApi());
    const match = matchRoute(request.method ?? '', url.pathname);
    if (match === null) throw new EtudeError('NOT_FOUND', `There is no ${url.pathname}; GET /openapi.json says what there is.`);
    if (!('route' in match)) {
      response.setHeader('allow', match.allowed.join(', '));
      return sendJson(response, 405, { error: { code: 'INVALID_ARGUMENT', message: `Use ${match.allowed.join(' or ')} here.` } });
    }
    const { authorization } = request.headers;
    if (!authorization) throw new EtudeError('UNAUTHENTICATED', 'Send a key: authorization: Bearer <key>.');
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    await this.#call(match, url.searchParams, request, response, { metadata: { authorization }, signal: gone.signal });
  }

  async #call(
    { route, fields }: Match,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
    base: { readonly metadata: Record<string, string>; readonly signal: AbortSignal },
  ): Promise<void> {
    const { method, body } = route;
    const settings = { ...base, timeoutMs: body === 'json' ? TIMEOUT_MS : LONG_TIMEOUT_MS };
    const call = this.#calls[method.localName];
    if (call === undefined) throw new Error(`there is no client for ${method.name}`);
    if (method.methodKind === 'server_streaming') {
      return sendLines(response, call(messageOf(method.input, {}, query, fields), settings) as AsyncIterable<{ lines: string[] }>);
    }
    const input = await inputOf({ route, fields }, query, request);
    sendJson(response, 200, plain(method.output, (await call(input, settings)) as Message));
  }
}

async function inputOf({ route: { method, body }, fields }: Match, query: URLSearchParams, request: IncomingMessage): Promise<unknown> {
  if (body === 'bytes') return documentParts(request, messageOf(headOf(method.input), {}, query, fields));
  if (body === 'lines') return create(method.input, { lines: (await readText(request)).split('\n').filter((line) => line !== '') });
  return messageOf(method.input, request.method === 'GET' ? {} : await readJson(request), query, fields);
}

/** Of a message whose first part is a head: the head's own type. */
function headOf(schema: DescMessage): DescMessage {
  const head = schema.fields.find((field) => field.name === 'head')?.message;
  if (!head) throw new Error(`${schema.name} has no head`);
  return head;
}

async function* documentParts(request: IncomingMessage, head: Message) {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim() ?? '';
  const told = head as Message & { mediaType: string };
  const mediaType = told.mediaType === '' && type !== 'application/octet-stream' ? type : told.mediaType;
  yield { part: { case: 'head', value: { ...told, mediaType } } };
  for await (const chunk of request as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.byteLength; at += LINES_PART_BYTES) {
      yield { part: { case: 'data', value: chunk.subarray(at, at + LINES_PART_BYTES) } };
    }
  }
}

const plain = (schema: DescMessage, message: Message) => toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  response.end(JSON.stringify(value));
}

/** The first answer decides the status; an error behind it can only cut the stream. */
async function sendLines(response: ServerResponse, answers: AsyncIterable<{ lines: string[] }>): Promise<void> {
  for await (const { lines } of answers) {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    if (!response.write(lines.map((line) => `${line}\n`).join(''))) await once(response, 'drain');
  }
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.end();
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { status, retryAfterMs, body } = restError(error);
  if (retryAfterMs !== undefined) response.setHeader('retry-after', String(Math.ceil(retryAfterMs / 1_000)));
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  sendJson(response, status, body);
}
