import type { CellToolAnswer, CellToolCall } from '@etude/contracts/scratchpad';
import type { FoundLine } from '@etude/contracts/sandbox';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import type { Json } from '@etude/contracts/json';
import type { WorkCell, WorkCellOutcome, WorkFile, WorkSandbox, WorkSandboxes, WorkSandboxRequest } from '../src/ports/sandboxes.js';
import { SandboxLost } from '../src/ports/sandboxes.js';

const HOST = fileURLToPath(new URL('work-sandbox.py', import.meta.url));
const RUNNER_ROOT = fileURLToPath(new URL('../../sandbox', import.meta.url));

type Message = { readonly type: string; readonly [name: string]: unknown };

/** One execution of a cell: its calls so far, and its end. */
interface Execution {
  readonly calls: CellToolCall[];
  readonly displays: Array<WorkCellOutcome['displays'][number]>;
  outcome: WorkCellOutcome | null;
  changed: () => void;
}

/**
 * Runs a test's own code in the interpreter of the real runner, in one Python process for each sandbox.
 * There is no isolation and no limit, so use it only for code of tests.
 */
export class FakeWorkSandboxes implements WorkSandboxes {
  private readonly opened = new Map<string, FakeWorkSandbox>();

  async open(request: WorkSandboxRequest, signal: AbortSignal): Promise<FakeWorkSandbox> {
    signal.throwIfAborted();
    const known = this.opened.get(request.requestId);
    if (known) return known;
    const sandbox = new FakeWorkSandbox(`sandboxes/s-${this.opened.size + 1}`);
    this.opened.set(request.requestId, sandbox);
    return sandbox;
  }

  /** Ends all sandboxes. Their processes end with the test's process as well. */
  close(): void {
    for (const sandbox of this.opened.values()) sandbox.lose('closed');
  }
}

export class FakeWorkSandbox implements WorkSandbox {
  private readonly host: ChildProcessWithoutNullStreams;
  private readonly executions = new Map<string, Execution>();
  private readonly asked = new Map<string, (answer: Message) => void>();
  private ended: string | null = null;

  constructor(readonly name: string) {
    const root = mkdtempSync(join(tmpdir(), 'etude-work-'));
    const environment = { PYTHONPYCACHEPREFIX: join(tmpdir(), 'etude-pycache'), PATH: '/usr/bin:/bin' };
    this.host = spawn('/usr/bin/python3', [HOST, RUNNER_ROOT, root], { env: environment });
    createInterface({ input: this.host.stdout }).on('line', (line) => this.take(JSON.parse(line) as Message));
    createInterface({ input: this.host.stderr }).on('line', (line) => process.stderr.write(`${line}\n`));
    this.host.on('exit', () => this.lose('its process ended'));
  }

  /** Ends the sandbox as if its machine had failed. */
  lose(why: string): void {
    this.ended ??= why;
    this.host.stdin.end();
    for (const execution of this.executions.values()) execution.changed();
    for (const resolve of this.asked.values()) resolve({ type: 'lost' });
  }

  async run(cell: WorkCell, answer: (call: CellToolCall) => Promise<CellToolAnswer>, signal: AbortSignal): Promise<WorkCellOutcome> {
    signal.throwIfAborted();
    this.mustLive();
    const { executionId: id } = cell;
    const execution = this.executions.get(id) ?? this.start(cell);
    const stop = () => this.send({ type: 'interrupt', id });
    signal.addEventListener('abort', stop);
    try {
      for (let seen = 0; ;) {
        const call = execution.calls[seen];
        if (call && !signal.aborted) {
          seen += 1;
          this.answer(call, await Promise.race([aborted(signal), answer(call)]));
        } else if (execution.outcome) {
          signal.throwIfAborted();
          return execution.outcome;
        } else {
          this.mustLive();
          await new Promise<void>((resolve) => (execution.changed = resolve));
        }
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async list(): Promise<readonly WorkFile[]> {
    const { entries } = (await this.ask({ type: 'file.list', after: '', limit: 1_000 })) as unknown as {
      entries: Array<{ path: string; sizeBytes: number; modifiedMs: number }>;
    };
    return entries.map(({ path, sizeBytes, modifiedMs: modifiedAt }) => ({ path, sizeBytes, modifiedAt }));
  }

  async read(path: string, bytesMax: number): Promise<Uint8Array | null> {
    const parts: Buffer[] = [];
    for (let offset = 0; offset < bytesMax; offset += parts.at(-1)!.length) {
      const length = Math.min(bytesMax - offset, 512 * 1024);
      const answer = await this.ask({ type: 'file.read', path, offset, length }, ['not_found']);
      if (answer.type === 'file.failed') return null;
      parts.push(Buffer.from(String(answer.data), 'base64'));
      if (!parts.at(-1)!.length) break;
    }
    return new Uint8Array(Buffer.concat(parts));
  }

  async write(path: string, content: Uint8Array): Promise<void> {
    await this.ask({ type: 'file.delete', path }, ['not_found']);
    for (let offset = 0; ; offset += 512 * 1024) {
      const data = Buffer.from(content.subarray(offset, offset + 512 * 1024)).toString('base64');
      const final = offset + 512 * 1024 >= content.length;
      await this.ask({ type: 'file.write', path, offset, data, final });
      if (final) return;
    }
  }

  async search(text: string, limit: number): Promise<{ readonly lines: readonly FoundLine[]; readonly total: number }> {
    const { lines, total } = await this.ask({ type: 'file.search', text, limit });
    return { lines: lines as FoundLine[], total: Number(total) };
  }

  async close(): Promise<void> {
    this.lose('closed');
  }

  private start({ executionId, code, tools, scratchpad }: WorkCell): Execution {
    const execution: Execution = { calls: [], displays: [], outcome: null, changed: () => undefined };
    this.executions.set(executionId, execution);
    this.send({ type: 'cell', id: executionId, code, tools, scratchpad });
    return execution;
  }

  private answer({ number }: CellToolCall, given: CellToolAnswer | null): void {
    if (!given) return;
    this.send({ type: 'answer', number, ...(given.success ? { result: given.result } : { error: given.error }) });
  }

  private mustLive(): void {
    if (this.ended) throw new SandboxLost(this.ended);
  }

  private async ask(message: Message, answered: readonly string[] = []): Promise<Message> {
    this.mustLive();
    const requestId = `f${this.asked.size + 1}`;
    const answer = await new Promise<Message>((resolve) => {
      this.asked.set(requestId, resolve);
      this.send({ ...message, requestId });
    });
    this.mustLive();
    if (answer.type === 'file.failed' && !answered.includes(String(answer.code)))
      throw new EtudeError(answer.code === 'disk' ? 'PAYLOAD_TOO_LARGE' : 'INVALID_ARGUMENT', String(answer.message), { field: 'path' });
    return answer;
  }

  private send(message: Message): void {
    if (!this.ended) this.host.stdin.write(`${JSON.stringify(message)}\n`);
  }

  private take(message: Message): void {
    if (message.type.startsWith('file.')) return this.asked.get(String(message.requestId))?.(message);
    const execution = this.executions.get(String(message.id))!;
    if (message.type === 'display') execution.displays.push(message.data as Record<string, Json>);
    else if (message.type === 'tool_call') {
      const { number, tool, arguments: given } = message as unknown as CellToolCall;
      execution.calls.push({ number, tool, arguments: given });
    } else {
      const { type: _type, id: _id, error, ...outcome } = message as unknown as WorkCellOutcome & { type: string; id: string };
      execution.outcome = { ...outcome, ...(error ? { error } : {}), displays: execution.displays };
    }
    execution.changed();
  }
}

/** Resolves to null when `signal` aborts. */
const aborted = (signal: AbortSignal) =>
  new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
