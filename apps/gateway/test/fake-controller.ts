import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import {
  type CreateSandboxRequest,
  type DownloadFileRequest,
  type ExecuteEventSchema,
  type ExecuteRequest,
  Sandboxes,
  type UploadFileRequest,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { serviceDefinition } from '@etude/contracts/grpc';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { SessionRequest } from '@etude/contracts/sandbox-session';
import { CONTROLLER_HEARTBEAT_MS, ControllerDirectory } from '@etude/queue/sandboxes/controller-directory';
import type { Producer } from '@etude/queue/jobs/producer';
import { newSandboxId, SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
} from '@grpc/grpc-js';
import { statusOf } from '@etude/contracts/grpc-server';

type EventInit = MessageInitShape<typeof ExecuteEventSchema>;
type Callback = (error: unknown, value?: unknown) => void;
type Unary<T> = ServerUnaryCall<T, unknown>;

export const TOKEN = 'a-token-of-the-inside';

/** Files and executions of the sandboxes, shared by all controllers. */
export class FakeWorld {
  readonly files = new Map<string, Buffer>();
  /** Events of an execution, in order; it goes on once more are pushed. */
  readonly executions = new Map<string, EventInit[]>();
  /** Code that was run, once per execution. */
  readonly ran: string[] = [];
  readonly cancelled: string[] = [];
}

/** A sandbox controller with no sandbox behind it, over real gRPC and a real Redis. */
export class FakeController {
  readonly id = `controller-${randomUUID()}`;
  /** Every call that reached it: method and tenant. */
  readonly seen: Array<{ readonly method: string; readonly tenant: string; readonly deadline: boolean }> = [];
  /** Answers CreateSandbox with this, while it is set. */
  refusal: EtudeError | null = null;
  /** It dies behind this many events of an execution, or parts of a download. */
  breakAfter = Infinity;
  /** It takes uploads on and leaves them lying. */
  readsNothing = false;
  /** Most bytes of a download that waited for the network at once. */
  waitingMax = 0;
  readonly #server = new Server({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 });
  readonly #sessions: SandboxSessionStore;
  readonly #directory: ControllerDirectory;
  #address = '';
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(
    producer: Producer,
    private readonly world: FakeWorld,
    private readonly options: { readonly sessions?: number; readonly sessionsMax?: number } = {},
  ) {
    this.#sessions = new SandboxSessionStore(producer.redis, producer.keys);
    this.#directory = new ControllerDirectory(producer.redis, producer.keys);
  }

  async start(): Promise<this> {
    this.#server.addService(serviceDefinition(Sandboxes), this.#handlers() as never);
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    this.#address = `127.0.0.1:${port}`;
    await this.#announce();
    this.#heartbeat = setInterval(() => void this.#announce(), CONTROLLER_HEARTBEAT_MS);
    return this;
  }

  #announce(): Promise<void> {
    const { sessions = 0, sessionsMax = 10 } = this.options;
    return this.#directory.announce({ controllerId: this.id, address: this.#address, sessions, sessionsMax });
  }

  /** As by SIGKILL. Its death is known at once. */
  async kill(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#server.forceShutdown();
    await this.#directory.withdraw(this.id);
  }

  #enter(method: string, call: { metadata: Metadata; getDeadline(): Date | number }): string {
    const tenant = String(call.metadata.get('etude-tenant')[0] ?? '');
    const known = call.metadata.get('authorization')[0] === `Bearer ${TOKEN}`;
    this.seen.push({ method, tenant, deadline: Number(call.getDeadline()) !== Infinity });
    if (!known) throw new EtudeError('UNAUTHENTICATED', 'wrong token');
    return tenant;
  }

  #unary<T>(method: string, handle: (request: T, tenant: string) => Promise<unknown>) {
    return async (call: Unary<T>, callback: Callback) => {
      try {
        callback(null, await handle(call.request, this.#enter(method, call)));
      } catch (error) {
        callback(error instanceof EtudeError ? statusOf(error) : error);
      }
    };
  }

  async #create(request: CreateSandboxRequest, tenant: string): Promise<unknown> {
    if (this.refusal) throw this.refusal;
    const session = SessionRequest.parse({ tenant, requestId: request.requestId, limits: SandboxLimits.parse({}), labels: request.labels });
    const { stored } = await this.#sessions.open(newSandboxId(), session, { controllerId: this.id, place: 'here' }, 100);
    return sandboxMessage(stored.session);
  }

  async #change(name: string, tenant: string, change: (id: string, epoch: number) => Promise<unknown>): Promise<unknown> {
    const id = name.split('/')[1] ?? '';
    const stored = await this.#sessions.get(tenant, id);
    if (!stored) throw new EtudeError('NOT_FOUND', `There is no ${name}`);
    await change(id, stored.ownerEpoch);
    const after = await this.#sessions.get(tenant, id);
    return after ? sandboxMessage(after.session) : {};
  }

  #handlers(): object {
    const { world } = this;
    const file = ({ name, path }: { name: string; path: string }) => {
      const content = world.files.get(`${name}/${path}`);
      if (!content) throw new EtudeError('NOT_FOUND', `There is no file ${path}`);
      return { path, sizeBytes: BigInt(content.byteLength), uploadedBytes: 0n };
    };
    return {
      CreateSandbox: this.#unary('CreateSandbox', (request: CreateSandboxRequest, tenant) => this.#create(request, tenant)),
      RenewSandbox: this.#unary('RenewSandbox', ({ name }: { name: string }, tenant) =>
        this.#change(name, tenant, (id, epoch) => this.#sessions.renew(tenant, id, epoch, 3_600_000)),
      ),
      CloseSandbox: this.#unary('CloseSandbox', ({ name }: { name: string }, tenant) =>
        this.#change(name, tenant, (id, epoch) => this.#sessions.end(tenant, id, epoch, 'closed', '')),
      ),
      CancelExecution: this.#unary('CancelExecution', async ({ executionId }: { executionId: string }) => {
        world.cancelled.push(executionId);
        return { stopped: true };
      }),
      GetSandboxFile: this.#unary('GetSandboxFile', async (request: { name: string; path: string }) => file(request)),
      ListSandboxFiles: this.#unary('ListSandboxFiles', async ({ name }: { name: string }) => ({
        files: [...world.files.keys()].filter((key) => key.startsWith(`${name}/`)).map((key) => ({ path: key.slice(name.length + 1) })),
      })),
      DeleteSandboxFile: this.#unary('DeleteSandboxFile', async (request: { name: string; path: string }) => {
        file(request);
        world.files.delete(`${request.name}/${request.path}`);
        return {};
      }),
      Execute: (call: ServerWritableStream<ExecuteRequest, EventInit>) => void this.#execute(call),
      UploadFile: (call: ServerReadableStream<UploadFileRequest, unknown>, callback: Callback) => void this.#upload(call, callback),
      DownloadFile: (call: ServerWritableStream<DownloadFileRequest, unknown>) => void this.#download(call),
    };
  }

  async #execute(call: ServerWritableStream<ExecuteRequest, EventInit>): Promise<void> {
    this.#enter('Execute', call);
    const { executionId, resumeToken, code } = call.request;
    if (!this.world.executions.has(executionId)) {
      this.world.ran.push(code);
      this.world.executions.set(executionId, code === 'wait' ? [] : printed(code));
    }
    const events = this.world.executions.get(executionId) ?? [];
    let at = resumeToken === '' ? 0 : Number(resumeToken) + 1;
    for (let sent = 0; !call.cancelled; at += 1, sent += 1) {
      if (sent >= this.breakAfter) return this.kill();
      while (events.length <= at && !call.cancelled) await new Promise((resolve) => setTimeout(resolve, 5));
      const event = events[at];
      if (!event) return;
      call.write({ ...event, executionId, resumeToken: String(at) });
      if (event.event?.case === 'result') return void call.end();
    }
  }

  async #upload(call: ServerReadableStream<UploadFileRequest, unknown>, callback: Callback): Promise<void> {
    this.#enter('UploadFile', call);
    let key = '';
    let bytes = 0;
    const kept: Uint8Array[] = [];
    if (this.readsNothing) return;
    for await (const { part } of call as AsyncIterable<UploadFileRequest>) {
      if (part.case === 'header') key = `${part.value.name}/${part.value.path}`;
      if (part.case !== 'chunk') continue;
      bytes += part.value.byteLength;
      if (bytes <= 1_048_576) kept.push(part.value);
    }
    this.world.files.set(key, Buffer.concat(kept));
    callback(null, { path: key, sizeBytes: BigInt(bytes) });
  }

  async #download(call: ServerWritableStream<DownloadFileRequest, unknown>): Promise<void> {
    this.#enter('DownloadFile', call);
    const content = this.world.files.get(`${call.request.name}/${call.request.path}`) ?? Buffer.alloc(0);
    const chunk = 512 * 1024;
    const cancelled = new Promise((resolve) => call.once('cancelled', resolve));
    let sent = 0;
    for (let at = Number(call.request.offset); at < content.byteLength && !call.cancelled; at += chunk, sent += 1) {
      if (sent >= this.breakAfter) return this.kill();
      const ready = call.write({ chunk: content.subarray(at, at + chunk), sizeBytes: BigInt(content.byteLength) });
      this.waitingMax = Math.max(this.waitingMax, at);
      if (!ready) await Promise.race([new Promise((resolve) => call.once('drain', resolve)), cancelled]);
    }
    call.end();
  }
}

/** Prints each word of the code and ends. */
export function printed(code: string): EventInit[] {
  const outputs = code.split(' ').map((word): EventInit => ({ event: { case: 'stdout', value: `${word}\n` } }));
  return [...outputs, { event: { case: 'result', value: { exit: 'ok', exitCode: 0 } } }];
}
