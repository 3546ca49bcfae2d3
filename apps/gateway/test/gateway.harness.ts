import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DescMethod, DescService, MessageInitShape } from '@bufbuild/protobuf';
import { SERVICES } from '@etude/contracts/grpc';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { Tasks, type TaskSpec, type TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { rolloutIdOf } from '@etude/contracts/ids';
import { decodeStatus } from '@etude/contracts/rich-status';
import { type TaskEvent, Usage } from '@etude/contracts/task';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import type { Question } from '@etude/domain/ports/journal';
import type { Memory } from '@etude/memory/memory';
import { openMemory } from '@etude/memory/open-memory';
import { openJournal, questionsOf } from '@etude/queue/tasks/journal';
import { Producer } from '@etude/queue/jobs/producer';
import { freePort } from '@etude/test-support/ports';
import { startRedis, type TestRedis } from '@etude/test-support/redis';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect } from 'vitest';
import { gatewayConfig } from '../src/config/gateway-config.js';
import { startGateway } from '../src/gateway.js';

/** All methods of all services. */
export const METHODS = Object.values(SERVICES).flatMap((service) => service.methods as readonly DescMethod[]);

/** Tenants with a key each; `ops` is an operator of tenant "acme", and `rev` reviews its skills. */
export const KEYS = { acme: 'key-of-acme', globex: 'key-of-globex', ops: 'key-of-ops', rev: 'key-of-rev' } as const;
export type KeyName = keyof typeof KEYS;

export const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');

export function writeKeys(path: string, names: readonly KeyName[] = ['acme', 'globex', 'ops', 'rev'], changed: object = {}): void {
  const entry = {
    acme: { tenant: 'acme', roles: ['user'] },
    globex: { tenant: 'globex', roles: ['user'] },
    ops: { tenant: 'acme', roles: ['operator', 'user'] },
    rev: { tenant: 'acme', roles: ['reviewer', 'user'] },
    ...changed,
  };
  writeFileSync(path, JSON.stringify({ keys: names.map((name) => ({ sha256: sha256(KEYS[name]), name, ...entry[name] })) }));
}

const same = (bytes: Buffer) => bytes;

/** A real gateway on a real Redis, for one test file. */
export class GatewayRig {
  readonly dir = mkdtempSync(join(tmpdir(), 'etude-gateway-'));
  readonly keysPath = join(this.dir, 'keys.json');
  readonly memoryPath = join(this.dir, 'memory.db');
  readonly prefix = `t${randomUUID().slice(0, 8)}`;
  port = 0;
  #redis: TestRedis | null = null;
  #app: { close(): Promise<void> } | null = null;
  #producer: Producer | null = null;
  readonly #memories: Memory[] = [];
  readonly #clients = new Map<string, { close(): void }>();

  get redis(): TestRedis {
    if (!this.#redis) throw new Error('Redis is not started');
    return this.#redis;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The producer that a worker uses. */
  get producer(): Producer {
    return (this.#producer ??= new Producer(this.redis.url, this.prefix));
  }

  environment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      ETUDE_LOG_LEVEL: 'silent',
      ETUDE_REDIS_URL: this.redis.url,
      ETUDE_QUEUE_PREFIX: this.prefix,
      ETUDE_GRPC_PORT: String(this.port),
      ETUDE_AUTH_KEYS_PATH: this.keysPath,
      ETUDE_MEMORY_PATH: this.memoryPath,
      ETUDE_EMBEDDER: 'lexical',
      ETUDE_RECONCILER_INTERVAL_MS: '200',
      ...more,
    };
  }

  /** A second connection to the gateway's memory. The rig closes it. */
  async openMemory(): Promise<Memory> {
    const memory = await openMemory({ store: { adapter: 'sqlite', path: this.memoryPath }, embedder: new LexicalEmbedder() });
    this.#memories.push(memory);
    return memory;
  }

  async startRedis({ durable = false } = {}): Promise<void> {
    this.#redis = await startRedis({ durable });
  }

  async start(more: Readonly<Record<string, string>> = {}): Promise<void> {
    if (!this.#redis) await this.startRedis();
    if (this.port === 0) this.port = await freePort();
    writeKeys(this.keysPath);
    this.#app = await startGateway(gatewayConfig.parse(this.environment(more)), async () => new LexicalEmbedder());
  }

  async stopGateway(): Promise<void> {
    await this.#app?.close();
    this.#app = null;
  }

  client<S extends DescService>(service: S, key: KeyName | null = 'acme'): ServiceClient<S> {
    return this.clientWith(service, key && KEYS[key]);
  }

  /** One client for each service and key or token. The rig closes it. */
  clientWith<S extends DescService>(service: S, apiKey: string | null): ServiceClient<S> {
    const id = `${service.typeName}/${apiKey}/${this.port}`;
    const known = this.#clients.get(id) ?? createServiceClient(service, this.address, apiKey === null ? {} : { apiKey });
    this.#clients.set(id, known);
    return known as ServiceClient<S>;
  }

  /** Sends bytes that no client library would make. @returns the bytes of the answer */
  async callRaw(path: string, bytes: Uint8Array, authorization = `Bearer ${KEYS.acme}`): Promise<Buffer> {
    const client = new Client(this.address, credentials.createInsecure(), { 'grpc.max_send_message_length': -1 });
    const metadata = new Metadata();
    metadata.set('authorization', authorization);
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    client.makeUnaryRequest(path, same, same, Buffer.from(bytes), metadata, (error, answer) => (error ? reject(error) : resolve(answer!)));
    return promise.finally(() => client.close());
  }

  tasks(key: KeyName | null = 'acme'): ServiceClient<typeof Tasks> {
    return this.client(Tasks, key);
  }

  /** Acts as a worker: takes the rollout and writes events. */
  async emit(
    tenant: string,
    taskName: string,
    events: readonly TaskEvent[],
    step: string = randomUUID(),
    usage: Partial<Usage> = {},
    value: unknown = null,
  ): Promise<void> {
    const journal = await this.#open(tenant, taskName);
    await journal.append({ key: step, value, usage: Usage.parse(usage) }, events);
  }

  /** Acts as a worker that finishes the task with success. */
  async finish(tenant: string, taskName: string, cases = 1, learnFrom?: []): Promise<void> {
    const journal = await this.#open(tenant, taskName);
    const usage = Usage.parse({ attempts: 1, modelCalls: 2 });
    const result = {
      verdict: 'AC',
      reason: 'all cases passed',
      code: 'print(3)',
      output: '3',
      casesPassed: cases,
      casesTotal: cases,
      skill: 'add@2',
      scripted: true,
      model: 'scripted',
    } as const;
    await journal.finish({ state: 'succeeded', stopReason: 'solved', result, usage, error: null, ...(learnFrom && { learnFrom }) });
  }

  /** Acts as a worker that asks the task's caller, and waits. */
  async ask(tenant: string, taskName: string, question: Question): Promise<void> {
    await questionsOf(await this.#open(tenant, taskName)).ask(question);
  }

  async #open(tenant: string, taskName: string) {
    const taskId = taskName.slice('tasks/'.length);
    const journal = await openJournal(this.producer.redis, this.producer.keys, { tenant, taskId, rolloutId: rolloutIdOf(taskId) });
    if (!journal) throw new Error(`${taskName} can't be run`);
    return journal;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    for (const memory of this.#memories) await memory.close();
    await this.stopGateway();
    await this.#producer?.close();
    await this.#redis?.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export type Settings = Readonly<Record<string, string>>;

/** Starts before the tests of a file and stops after them. A function of settings is called right before the start. */
export function gatewayForFile(more: Settings | (() => Promise<Settings>) = {}): GatewayRig {
  const rig = new GatewayRig();
  beforeAll(async () => rig.start(typeof more === 'function' ? await more() : more));
  afterAll(() => rig.stop());
  return rig;
}

export type SpecInit = Exclude<MessageInitShape<typeof TaskSpecSchema>, TaskSpec>;

export const SPEC: SpecInit & { readonly prompt: string } = {
  prompt: 'Read two integers and print their sum.',
  evaluator: { kind: { case: 'ioCases', value: { cases: [{ stdin: '1 2', expectedStdout: '3' }] } } },
};

export interface Refusal {
  /** The numeric status of gRPC. */
  readonly status: number;
  readonly message: string;
  readonly code: string | undefined;
  readonly fields: readonly string[];
  readonly descriptions: readonly string[];
  readonly retryAfterMs: number | undefined;
}

/** The error of a call; fails the test if the call succeeds. */
export async function refusal(call: Promise<unknown>): Promise<Refusal> {
  const error = await call.then(
    () => expect.unreachable('the call was not refused'),
    (reason: unknown) => reason as ServiceError,
  );
  const details = decodeStatus(error.metadata);
  return {
    status: error.code,
    message: error.details,
    code: details?.code,
    fields: (details?.violations ?? []).map(({ field }) => field),
    descriptions: (details?.violations ?? []).map(({ description }) => description),
    retryAfterMs: details?.retryAfterMs,
  };
}

/** The messages that import a document. */
export async function* documentOf(head: { readonly name: string; readonly agent: string; readonly sha256?: string }, text: string) {
  yield { part: { case: 'head' as const, value: head } };
  yield { part: { case: 'data' as const, value: Buffer.from(text) } };
}

/** All pages of a list. @param read reads one page by its token */
export async function pagesOf<P extends { readonly nextPageToken: string }>(read: (pageToken: string) => Promise<P>): Promise<P[]> {
  const pages = [await read('')];
  for (let token = pages[0]?.nextPageToken; token; token = pages.at(-1)?.nextPageToken) pages.push(await read(token));
  return pages;
}

export async function collect<T>(source: AsyncIterable<T>, most = Infinity): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) {
    all.push(one);
    if (all.length >= most) break;
  }
  return all;
}
