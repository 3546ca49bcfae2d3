import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { type ExecuteEventSchema, type ExecuteRequest, Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { addService, listenGrpc, type ListeningServer, type ServedCall, type ServiceHandlers } from '@etude/contracts/grpc-server';
import { SandboxLimits, SessionRequest } from '@etude/contracts/sandbox';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { CONTROLLER_HEARTBEAT_MS, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import type { Producer } from '@etude/queue/jobs/producer';
import { newSandboxId, SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';

type EventInit = MessageInitShape<typeof ExecuteEventSchema>;

interface Caller {
  readonly tenant: string;
  readonly signal: AbortSignal;
}

export const TOKEN = 'a-token-of-the-inside';
const CHUNK = 512 * 1024;
const nothing = async () => ({});

/** Files and executions of the sandboxes, shared by all controllers. */
export class FakeWorld {
  /** By "sandbox/path". */
  readonly files = new Map<string, Buffer>();
  /** Events of each execution, in order. A running execution sends events that are pushed later. */
  readonly executions = new Map<string, EventInit[]>();
  /** The code of each execution, once. */
  readonly ran: string[] = [];
  readonly cancelled: string[] = [];
}

/** A sandbox controller without sandboxes, over real gRPC and a real Redis. */
export class FakeController {
  readonly id = `controller-${randomUUID()}`;
  /** The received calls. */
  readonly seen: Array<{ readonly method: string; readonly tenant: string; readonly deadline: boolean }> = [];
  /** If set, the error of every CreateSandbox. */
  refusal: EtudeError | null = null;
  /** The controller dies after this many events of an execution or parts of a download. */
  breakAfter = Infinity;
  readonly #sessions: SandboxSessionStore;
  readonly #directory: ControllerDirectory;
  #server: ListeningServer | null = null;
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
    const { sessions = 0, sessionsMax = 10 } = this.options;
    const open = (call: ServedCall, { name }: { name: string }) => this.#enter(name, call);
    const server = await listenGrpc('127.0.0.1', 0, (grpc) =>
      addService(grpc, Sandboxes, this.#handlers(), { open, onMistake: () => undefined }),
    );
    this.#server = server;
    const self = { controllerId: this.id, address: `127.0.0.1:${server.port}`, sessions, sessionsMax };
    await this.#directory.announce(self);
    this.#heartbeat = setInterval(() => void this.#directory.announce(self), CONTROLLER_HEARTBEAT_MS);
    return this;
  }

  /** Ends like a killed process. The directory drops the controller at once. */
  async kill(): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#server?.close(0);
    await this.#directory.withdraw(this.id);
  }

  #enter(method: string, { metadata, deadlineMs, signal }: ServedCall): Caller {
    const tenant = String(metadata.get('etude-tenant')[0] ?? '');
    this.seen.push({ method, tenant, deadline: deadlineMs !== Infinity });
    if (metadata.get('authorization')[0] !== `Bearer ${TOKEN}`) throw new EtudeError('UNAUTHENTICATED', 'wrong token');
    return { tenant, signal };
  }

  async #change(name: string, tenant: string, change: (id: string, epoch: number) => Promise<unknown>) {
    const id = name.split('/')[1] ?? '';
    const stored = await this.#sessions.get(tenant, id);
    if (!stored) throw new EtudeError('NOT_FOUND', `There is no ${name}`);
    await change(id, stored.ownerEpoch);
    const after = await this.#sessions.get(tenant, id);
    return after ? sandboxMessage(after.session) : {};
  }

  #handlers(): ServiceHandlers<typeof Sandboxes, Caller> {
    const { world } = this;
    return {
      getSandbox: nothing,
      listSandboxes: nothing,
      getSandboxFile: nothing,
      listSandboxFiles: nothing,
      deleteSandboxFile: nothing,
      answerToolCall: nothing,
      searchSandboxFiles: nothing,
      createSandbox: async ({ requestId, labels }, { tenant }) => {
        if (this.refusal) throw this.refusal;
        const session = SessionRequest.parse({ tenant, requestId, limits: SandboxLimits.parse({}), labels });
        const { stored } = await this.#sessions.open(newSandboxId(), session, { controllerId: this.id, place: 'here' }, 100);
        return sandboxMessage(stored.session);
      },
      renewSandbox: ({ name }, { tenant }) => this.#change(name, tenant, (id, epoch) => this.#sessions.renew(tenant, id, epoch, 3_600_000)),
      closeSandbox: ({ name }, { tenant }) =>
        this.#change(name, tenant, (id, epoch) => this.#sessions.end(tenant, id, epoch, 'closed', '')),
      cancelExecution: async ({ executionId }) => {
        world.cancelled.push(executionId);
        world.executions.get(executionId)?.push({ event: { case: 'result', value: { exit: 'cancelled' } } });
        return { stopped: true };
      },
      execute: (request, { signal }) => this.#execute(request, signal),
      uploadFile: async (requests) => {
        const [{ part: head } = { part: { case: undefined } }, ...rest] = await Array.fromAsync(requests);
        const content = Buffer.concat(rest.flatMap(({ part }) => (part.case === 'chunk' ? [part.value] : [])));
        if (head.case === 'header') world.files.set(`${head.value.name}/${head.value.path}`, content);
        return { sizeBytes: BigInt(content.byteLength) };
      },
      downloadFile: ({ name, path, offset }) => this.#download(world.files.get(`${name}/${path}`) ?? Buffer.alloc(0), Number(offset)),
    };
  }

  async *#execute({ executionId, resumeToken, code }: ExecuteRequest, signal: AbortSignal): AsyncGenerator<EventInit> {
    if (!this.world.executions.has(executionId)) {
      this.world.ran.push(code);
      this.world.executions.set(executionId, code === 'wait' ? [] : printed(code));
    }
    const events = this.world.executions.get(executionId) ?? [];
    let at = resumeToken === '' ? 0 : Number(resumeToken) + 1;
    for (let sent = 0; !signal.aborted; at += 1, sent += 1) {
      if (sent >= this.breakAfter) {
        await this.kill();
        return;
      }
      while (events.length <= at && !signal.aborted) await sleep(5);
      const event = events[at];
      if (event) yield { ...event, executionId, resumeToken: String(at) };
      if (event?.event?.case === 'result') return;
    }
  }

  async *#download(content: Buffer, offset: number) {
    for (let at = offset, sent = 0; at < content.byteLength; at += CHUNK, sent += 1) {
      if (sent >= this.breakAfter) {
        await this.kill();
        return;
      }
      yield { chunk: content.subarray(at, at + CHUNK), sizeBytes: BigInt(content.byteLength) };
    }
  }
}

/** The events of a run that prints each word of its code. */
function printed(code: string): EventInit[] {
  const outputs = code.split(' ').map((word): EventInit => ({ event: { case: 'stdout', value: `${word}\n` } }));
  return [...outputs, { event: { case: 'result', value: { exit: 'ok', exitCode: 0 } } }];
}
