import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { create, type DescField, type DescMessage, type DescMethod, type Message, toJson } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory, MemoryHitSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { CallSettings } from '@etude/contracts/grpc-client';
import type { Authenticator } from '../calls/caller.js';
import type { Calls } from '../calls/calls.js';
import { localClient } from '../calls/local-client.js';
import { type BodyLimits, BodyReader } from './body-reader.js';
import { HttpDoor, keyOf, mediaTypeOf } from './http-door.js';
import { openApi } from './openapi.js';
import { jsonOf, messageOf, textOf } from './rest-request.js';
import { type Match, matchRoute } from './routes.js';
import { matchResource, type ResourceAnswer, type ResourceMatch, SkillResources } from './skill-resources.js';

const TIMEOUT_MS = 60_000;
/** Of calls that read or write much. */
const LONG_TIMEOUT_MS = 600_000;
const LINES_PART_BYTES = 1024 * 1024;
const BODIES: BodyLimits = { readingMax: 8, idleMs: 30_000 };

const SERVICES = [Memory, Skills, Agents, Tools];

type AnyCall = (request: unknown, settings: CallSettings) => unknown;

interface CallBase {
  readonly metadata: Record<string, string>;
  readonly signal: AbortSignal;
}

export interface RestServerParts {
  readonly calls: Calls;
  readonly authenticator: Pick<Authenticator, 'identify'>;
  /** Name of the provider in paths of resources, such as "Etude.Skill". */
  readonly provider: string;
  readonly bodies?: BodyLimits;
}

/** `etude.v1` as JSON over HTTP: every request becomes a call of the same handlers as over gRPC, with the caller's key. */
export class RestServer {
  readonly #clients: ReadonlyMap<string, Readonly<Record<string, AnyCall>>>;
  readonly #resources: SkillResources;
  readonly #door: HttpDoor;
  readonly #authenticator: Pick<Authenticator, 'identify'>;
  readonly #bodies: BodyReader;

  constructor({ calls, authenticator, provider, bodies = BODIES }: RestServerParts) {
    this.#clients = new Map(SERVICES.map((service) => [service.typeName, localClient(calls, service) as never]));
    this.#resources = new SkillResources(provider, localClient(calls, Skills));
    this.#authenticator = authenticator;
    this.#bodies = new BodyReader(bodies);
    this.#door = new HttpDoor({
      setting: 'ETUDE_REST_PORT',
      requestTimeoutMs: LONG_TIMEOUT_MS,
      answer: (request, response) => this.#answer(request, response),
      fail: (response, { status, body }) => sendJson(response, status, body),
    });
  }

  listen(host: string, port: number): Promise<void> {
    return this.#door.listen(host, port);
  }

  close(): Promise<void> {
    return this.#door.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://gateway');
    if (url.pathname === '/openapi.json') return sendDescription(request, response, this.#resources.provider);
    const verb = request.method ?? '';
    const match = matchRoute(verb, url.pathname) ?? matchResource(verb, url.pathname);
    if (match === null) throw new EtudeError('NOT_FOUND', `There is no ${url.pathname}; GET /openapi.json says what there is.`);
    if ('allowed' in match) {
      response.setHeader('allow', match.allowed.join(', '));
      return sendJson(response, 405, { error: { code: 'INVALID_ARGUMENT', message: `Use ${match.allowed.join(' or ')} here.` } });
    }
    const authorization = keyOf(request, this.#authenticator);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const base = { metadata: { authorization }, signal: gone.signal };
    if ('resource' in match) return sendResource(response, await this.#resource(match, url.searchParams, request, base));
    await this.#call(match, url.searchParams, request, response, base);
  }

  async #resource(match: ResourceMatch, query: URLSearchParams, request: IncomingMessage, base: CallBase): Promise<ResourceAnswer> {
    const hasBody = match.verb === 'PUT' || match.verb === 'POST';
    const body = hasBody ? jsonOf(request, await this.#bodies.whole(request, match.bytesMax)) : {};
    return this.#resources.answer(match, { query, body }, { ...base, timeoutMs: TIMEOUT_MS });
  }

  async #call(
    { route, fields }: Match,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
    base: CallBase,
  ): Promise<void> {
    const { method, body } = route;
    const settings = { ...base, timeoutMs: body === 'json' ? TIMEOUT_MS : LONG_TIMEOUT_MS };
    const call = this.#clientOf(method);
    if (method.methodKind === 'server_streaming') {
      return sendLines(response, call(messageOf(method.input, {}, query, fields), settings) as AsyncIterable<{ lines: string[] }>);
    }
    const input = await this.#inputOf({ route, fields }, query, request);
    sendJson(response, 200, plain(method.output, (await call(input, settings)) as Message));
  }

  #clientOf(method: DescMethod): AnyCall {
    const call = this.#clients.get(method.parent.typeName)?.[method.localName];
    if (call === undefined) throw new Error(`there is no client for ${method.name}`);
    return call;
  }

  async #inputOf({ route, fields }: Match, query: URLSearchParams, request: IncomingMessage): Promise<unknown> {
    const { method, body, bytesMax } = route;
    if (body === 'bytes') {
      const head = messageOf(headOf(method.input), {}, query, fields);
      return documentParts(request, this.#bodies.chunks(request, bytesMax), head);
    }
    if (body === 'archive') {
      const head = messageOf(headOf(method.input), {}, query, fields);
      return archiveParts(this.#bodies.chunks(request, bytesMax), head);
    }
    if (request.method === 'GET') return messageOf(method.input, {}, query, fields);
    const whole = await this.#bodies.whole(request, bytesMax);
    if (body === 'lines')
      return create(method.input, {
        lines: textOf(whole)
          .split('\n')
          .filter((line) => line !== ''),
      });
    return messageOf(method.input, jsonOf(request, whole), query, fields);
  }
}

function sendDescription(request: IncomingMessage, response: ServerResponse, provider: string): void {
  if (request.method === 'GET' || request.method === 'HEAD') return sendJson(response, 200, openApi(provider));
  response.setHeader('allow', 'GET, HEAD');
  sendJson(response, 405, { error: { code: 'INVALID_ARGUMENT', message: 'Use GET or HEAD here.' } });
}

/** Of a message whose first part is a head: the head's own type. */
function headOf(schema: DescMessage): DescMessage {
  const head = schema.fields.find((field) => field.name === 'head')?.message;
  if (!head) throw new Error(`${schema.name} has no head`);
  return head;
}

async function* documentParts(request: IncomingMessage, bytes: AsyncIterable<Buffer>, head: Message) {
  const type = mediaTypeOf(request);
  const told = head as Message & { mediaType: string };
  const mediaType = told.mediaType === '' && type !== 'application/octet-stream' ? type : told.mediaType;
  yield { part: { case: 'head', value: { ...told, mediaType } } };
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.byteLength; at += LINES_PART_BYTES) {
      yield { part: { case: 'data', value: chunk.subarray(at, at + LINES_PART_BYTES) } };
    }
  }
}

async function* archiveParts(bytes: AsyncIterable<Buffer>, head: Message) {
  yield { part: { case: 'head', value: head } };
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.byteLength; at += LINES_PART_BYTES) {
      yield { part: { case: 'file', value: { path: 'archive', data: chunk.subarray(at, at + LINES_PART_BYTES) } } };
    }
  }
}

function sendResource(response: ServerResponse, { status, json }: ResourceAnswer): void {
  if (json !== undefined) return sendJson(response, status, json);
  response.writeHead(status, { 'cache-control': 'no-store' });
  response.end();
}

const isHit = ({ message }: DescField) => message?.typeName === MemoryHitSchema.typeName;

/** With every field, but for how scores came about, which is there where it was asked for. */
function plain(schema: DescMessage, message: Message): unknown {
  const json = toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true }) as Readonly<Record<string, unknown>>;
  const hits = schema.fields.filter(isHit).map(({ name }) => [name, (json[name] as readonly JsonHit[]).map(withoutNothing)]);
  return { ...json, ...Object.fromEntries(hits) };
}

type JsonHit = Readonly<Record<string, unknown>> & { readonly explanation?: object };

function withoutNothing({ explanation, ...hit }: JsonHit): object {
  return Object.keys(explanation ?? {}).length === 0 ? hit : { ...hit, explanation };
}

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
