import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Calls, newRequestId } from './calls.js';
import {
  type ExecuteEvent,
  type ExecutionOutcome,
  Language,
  type RichOutput,
  Sandboxes as Service,
  type Sandbox as SandboxMessage,
  type SandboxFile,
} from './gen/etude/v1/sandboxes_pb.js';
import type { SandboxLimitsSchema } from './gen/etude/v1/tasks_pb.js';
import { chunksOf } from './memory.js';

const TTL_MS = 600_000;

export interface SandboxOptions {
  readonly template?: string;
  /** Default 10 min. */
  readonly ttlMs?: number;
  readonly limits?: MessageInitShape<typeof SandboxLimitsSchema>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly scratchpad?: boolean;
  /** A repeat with the same id returns the same sandbox. Default: a new id. */
  readonly requestId?: string;
}

export interface RunOptions {
  /** A command line for /bin/sh instead of a Python cell. */
  readonly shell?: boolean;
  readonly stdin?: string;
  readonly executionId?: string;
  readonly signal?: AbortSignal;
}

/** A finished execution. `displays` has each displayed object in all its forms. */
export interface Execution {
  readonly stdout: string;
  readonly stderr: string;
  readonly displays: readonly RichOutput[];
  /** The last displayed object as text, such as the value of the last expression. */
  readonly text: string;
  /** Whether the code ran to its end. */
  readonly ok: boolean;
  readonly outcome: ExecutionOutcome;
}

/** A code interpreter without a network. It keeps Python names and files until it is closed. */
export class Sandbox {
  constructor(
    private readonly calls: Calls,
    readonly name: string,
  ) {}

  /** Runs code, and yields its output while it runs. The last event is the result. A broken stream resumes automatically. */
  stream(code: string, options: RunOptions = {}): AsyncGenerator<ExecuteEvent, void> {
    const { shell = false, stdin, executionId = newRequestId(), signal } = options;
    const language = shell ? Language.SHELL : Language.PYTHON;
    const request = { name: this.name, executionId, language, code, stdin };
    return this.calls.resuming(Service.method.execute, request, ({ event }) => event.case === 'result', signal);
  }

  /** Runs a Python cell, or with `shell` a command line, to its end. Names stay for the next cell. */
  async run(code: string, options: RunOptions = {}): Promise<Execution> {
    let [stdout, stderr] = ['', ''];
    const displays: RichOutput[] = [];
    for await (const { event } of this.stream(code, options)) {
      if (event.case === 'stdout') stdout += event.value;
      if (event.case === 'stderr') stderr += event.value;
      if (event.case === 'display') displays.push(event.value);
      if (event.case === 'result') {
        const text = displays.at(-1)?.text['text/plain'] ?? '';
        return { stdout, stderr, displays, text, ok: event.value.exit === 'ok', outcome: event.value };
      }
    }
    throw new Error('the stream ended before its result');
  }

  /** Stops a running execution. Returns false if it was not running. */
  async cancel(executionId: string): Promise<boolean> {
    return (await this.calls.unary(Service.method.cancelExecution, { name: this.name, executionId })).stopped;
  }

  /** Writes a file, such as "data/input.csv". */
  async upload(path: string, content: string | Uint8Array): Promise<SandboxFile> {
    const data = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const header = { part: { case: 'header' as const, value: { name: this.name, path, sizeBytes: BigInt(data.length) } } };
    const parts = [...chunksOf(data)].map((chunk) => ({ part: { case: 'chunk' as const, value: chunk } }));
    return this.calls.upload(Service.method.uploadFile, [header, ...parts]);
  }

  async download(path: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const { chunk } of this.calls.stream(Service.method.downloadFile, { name: this.name, path })) chunks.push(chunk);
    return new Uint8Array(Buffer.concat(chunks));
  }

  /** All files, by path. */
  files() {
    return this.calls.pages(Service.method.listSandboxFiles, { name: this.name }, ({ files }) => files);
  }

  async delete(path: string): Promise<void> {
    await this.calls.unary(Service.method.deleteSandboxFile, { name: this.name, path });
  }

  /** Extends the sandbox's lifetime to `ttlMs` from now. */
  async renew(ttlMs: number): Promise<SandboxMessage> {
    return this.calls.unary(Service.method.renewSandbox, { name: this.name, ttl: durationFromMs(ttlMs) });
  }

  /** Ends the sandbox and everything in it. Closing it again changes nothing. */
  async close(): Promise<void> {
    await this.calls.unary(Service.method.closeSandbox, { name: this.name });
  }
}

/** Code interpreters of the tenant. */
export class Sandboxes {
  constructor(private readonly calls: Calls) {}

  /** Opens a sandbox. */
  async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const { ttlMs = TTL_MS, labels, requestId = newRequestId(), ...rest } = options;
    const request = { ttl: durationFromMs(ttlMs), labels: { ...labels }, requestId, ...rest };
    return new Sandbox(this.calls, (await this.calls.unary(Service.method.createSandbox, request)).name);
  }

  /** Opens a sandbox for a function, and closes it afterwards. */
  async with<T>(work: (sandbox: Sandbox) => Promise<T>, options: SandboxOptions = {}): Promise<T> {
    const sandbox = await this.create(options);
    try {
      return await work(sandbox);
    } finally {
      await sandbox.close();
    }
  }

  /** A sandbox by its name, without a call to the gateway. */
  get(name: string): Sandbox {
    return new Sandbox(this.calls, name);
  }

  /** All open sandboxes, and those that ended within the last hour, newest first. */
  list() {
    return this.calls.pages(Service.method.listSandboxes, {}, ({ sandboxes }) => sandboxes);
  }
}
