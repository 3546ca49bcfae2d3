import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { create, type DescMessage, type Message, toJson, toJsonString } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { SERVICES } from '@etude/contracts/grpc';
import type { CallSettings } from '@etude/contracts/grpc-client';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox';
import type { ServerTls } from '@etude/platform/tls';
import type { Authenticator } from '../calls/caller.js';
import { type Calls, MIB } from '../calls/calls.js';
import { localClient } from '../calls/local-client.js';
import { isOfConsole, sendConsole } from './console-files.js';
import { chunksOf, httpDoor, keyOf, mediaTypeOf, textOf } from './http-door.js';
import { openApi } from './openapi.js';
import { jsonOf, messageOf } from './rest-request.js';
import { headOf, type Match, matchRoute, type Route, ROUTES } from './routes.js';
import { placeOf, RESOURCE_ROUTES, type ResourceRequest, type ResourceRoute } from './skill-resources.js';

const TIMEOUT_MS = 600_000;

type AnyCall = (request: unknown, settings: CallSettings) => unknown;

interface Asked<P extends Route | ResourceRoute> extends Match<P> {
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly settings: CallSettings;
}

interface RestDoorParts {
  readonly calls: Calls;
  readonly authenticator: Pick<Authenticator, 'identify'>;
  /** Provider name in the paths of resources, such as "Etude.Skill". */
  readonly provider: string;
  readonly tls: ServerTls | null;
}

/** `etude.v1` as JSON over HTTP. Requests become calls of the same handlers as over gRPC, with the caller's key. */
export function restDoor({ calls, authenticator, provider, tls }: RestDoorParts) {
  const clients = new Map(Object.values(SERVICES).map((service) => [service.typeName, localClient(calls, service)]));
  const skills = localClient(calls, SERVICES.skills);
  return httpDoor({
    setting: 'ETUDE_REST_PORT',
    tls,
    fail: (response, { status, error }) => sendJson(response, status, { error }),
    async answer(request, response) {
      const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://gateway');
      if (pathname === '/openapi.json') return sendJson(response, 200, openApi(provider));
      if (isOfConsole(pathname) && request.method === 'GET') return sendConsole(pathname, request, response);
      const match = matchRoute<Route | ResourceRoute>([...ROUTES, ...RESOURCE_ROUTES], request.method ?? '', pathname);
      if (match === null)
        throw new EtudeError('NOT_FOUND', `There is no ${request.method} ${pathname}; GET /openapi.json lists the calls.`);
      const { authorization, user } = await keyOf(request, authenticator);
      // The console then shows no choice of users.
      if (user !== undefined) response.setHeader('etude-user', user);
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const { traceparent = '' } = request.headers as { traceparent?: string };
      const settings = { metadata: { authorization, traceparent }, signal: gone.signal, timeoutMs: TIMEOUT_MS };
      const { route, fields } = match;
      const asked = { fields, query, request, response, settings };
      if (!('method' in route)) return answerResource({ ...asked, route }, skills, placeOf(provider, fields));
      const client = clients.get(route.method.parent.typeName) as Readonly<Record<string, AnyCall>>;
      return answerCall({ ...asked, route }, client[route.method.localName]!);
    },
  });
}

async function answerResource(
  { route, fields, query, request, response, settings }: Asked<ResourceRoute>,
  skills: ResourceRequest['skills'],
  place: ResourceRequest['place'],
): Promise<void> {
  const body = route.sends === undefined ? {} : await jsonOf(request, route.bytesMax);
  const { status, json } = await route.answer({ skills, settings, place, fields, query, body });
  if (json !== undefined) return sendJson(response, status, json);
  response.writeHead(status, { 'cache-control': 'no-store' }).end();
}

async function answerCall(asked: Asked<Route>, call: AnyCall): Promise<void> {
  const { route, fields, query, request, response, settings } = asked;
  const { method, body } = route;
  if (method.methodKind === 'server_streaming') {
    const seen = request.headers['last-event-id'];
    const resumed = body === 'events' && typeof seen === 'string' ? { ...fields, resume_token: seen } : fields;
    const json = request.method === 'POST' ? await jsonOf(request, route.bytesMax) : {};
    const answers = call(messageOf(method.input, json, query, resumed), settings) as AsyncIterable<never>;
    if (body === 'events') return sendStream(response, 'text/event-stream', eventsOf(method.output, answers));
    if (body === 'bytes') return sendStream(response, 'application/octet-stream', bytesOf(answers), ATTACHED);
    return sendStream(response, 'application/x-ndjson', linesOf(answers));
  }
  const answer = (await call(await inputOf(asked), settings)) as Message;
  sendJson(response, 200, toJson(method.output, answer, { useProtoFieldName: true, alwaysEmitImplicit: true }));
}

async function inputOf({ route, fields, query, request }: Asked<Route>): Promise<unknown> {
  const { method, body, bytesMax } = route;
  if (body === 'bytes' || body === 'archive') {
    const headField = headOf(method);
    const head = messageOf(headField.message!, {}, query, fields);
    const bytes = chunksOf(request, bytesMax);
    if (headField.name === 'header')
      return messagesOf({ case: 'header', value: head }, bytes, FILE_CHUNK_BYTES_MAX, (value) => ({ case: 'chunk', value }));
    if (body === 'archive')
      return messagesOf({ case: 'head', value: head }, bytes, MIB, (data) => ({ case: 'file', value: { path: 'archive', data } }));
    const { mediaType } = head as Message & { mediaType: string };
    const typed = { ...head, mediaType: mediaType || typeOf(request) };
    return messagesOf({ case: 'head', value: typed }, bytes, MIB, (value) => ({ case: 'data', value }));
  }
  if (request.method === 'GET') return messageOf(method.input, {}, query, fields);
  if (body !== 'lines') return messageOf(method.input, await jsonOf(request, bytesMax), query, fields);
  const lines = (await textOf(request, bytesMax)).split('\n');
  return create(method.input, { lines: lines.filter((line) => line !== '') });
}

function typeOf(request: IncomingMessage): string {
  const type = mediaTypeOf(request);
  return type === 'application/octet-stream' ? '' : type;
}

async function* messagesOf(first: object, bytes: AsyncIterable<Buffer>, bytesMax: number, partOf: (data: Buffer) => object) {
  yield { part: first };
  for await (const chunk of bytes)
    for (let at = 0; at < chunk.byteLength; at += bytesMax) yield { part: partOf(chunk.subarray(at, at + bytesMax)) };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  response.end(JSON.stringify(value));
}

/** A browser stores a downloaded file and never shows it. */
const ATTACHED = { 'content-disposition': 'attachment', 'x-content-type-options': 'nosniff' };

async function* bytesOf(answers: AsyncIterable<{ readonly chunk: Uint8Array }>) {
  for await (const { chunk } of answers) yield chunk;
}

async function* linesOf(answers: AsyncIterable<{ readonly lines: readonly string[] }>) {
  for await (const { lines } of answers) yield lines.map((line) => `${line}\n`).join('');
}

/** Server-sent events. An event's id is its resume token, so that a client that connects again misses no event. */
async function* eventsOf(schema: DescMessage, answers: AsyncIterable<Message & { readonly resumeToken: string }>) {
  for await (const answer of answers)
    yield `id: ${answer.resumeToken}\ndata: ${toJsonString(schema, answer, { useProtoFieldName: true })}\n\n`;
}

/** The first part decides the status. A later error can only cut the stream. */
async function sendStream(
  response: ServerResponse,
  type: string,
  parts: AsyncIterable<string | Uint8Array>,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const begin = () => response.headersSent || response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store', ...headers });
  for await (const part of parts) {
    begin();
    if (!response.write(part)) await once(response, 'drain');
  }
  begin();
  response.end();
}
