import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { EtudeError } from '@etude/contracts/errors';
import { BUNDLE_FD, INFO_FD, SECCOMP_FD } from './bubblewrap-command.js';
import { encodeFrame, FrameReader } from './frames.js';

/** What a supervisor sends; see docs/sandbox-protocol.md. */
export interface SupervisorFrame {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface Launch {
  readonly command: readonly string[];
  readonly bundle: Buffer;
  readonly seccomp: Buffer | null;
  /** User to run as; undefined: the current one. Never root, to whom a limit on processes means nothing. */
  readonly uid: number | undefined;
}

const STDERR_CHARS_MAX = 4_000;

/** One running sandbox: its process, and frames to and from its supervisor. */
export class SandboxProcess {
  private readonly child: ChildProcess;
  private readonly reader = new FrameReader();
  private readonly inbox: SupervisorFrame[] = [];
  private waiting: ((frame: SupervisorFrame | null) => void) | null = null;
  private insidePid: number | null = null;
  private stderr = '';
  private over = false;
  private doomed = false;
  /** Resolves when no process of the sandbox exists any more. */
  readonly gone: Promise<void>;

  constructor({ command, bundle, seccomp, uid }: Launch) {
    const [program = '', ...args] = command;
    this.child = spawn(program, args, {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    this.gone = this.watch();
    this.readInfo();
    this.hand(BUNDLE_FD, bundle);
    this.hand(SECCOMP_FD, seccomp ?? Buffer.alloc(0));
  }

  get alive(): boolean {
    return !this.over;
  }

  /** The supervisor's pid outside; null until bubblewrap has said it. For tests of what is left behind. */
  get pid(): number | null {
    return this.insidePid;
  }

  send(frame: SupervisorFrame): void {
    this.child.stdin?.write(encodeFrame(frame));
  }

  /** The next frame; null once the sandbox is gone. One reader at a time. */
  receive(): Promise<SupervisorFrame | null> {
    const ready = this.inbox.shift();
    if (ready) return Promise.resolve(ready);
    if (this.over) return Promise.resolve(null);
    return new Promise((resolve) => (this.waiting = resolve));
  }

  /** @throws EtudeError SANDBOX_UNAVAILABLE with what bubblewrap said, when it could not be started */
  async hello(): Promise<void> {
    const frame = await this.receive();
    if (frame?.type !== 'hello') throw new EtudeError('SANDBOX_UNAVAILABLE', `a sandbox could not be started: ${this.stderr.trim() || 'it ended at once'}`);
  }

  /** Kills process 1 of the sandbox, and with it all others. */
  destroy(): Promise<void> {
    this.doomed = true;
    // bubblewrap outside is its parent and leaves once the kernel has ended everything inside. Killed before the inside
    // exists, it would leave an orphan that waits for it for ever.
    if (!this.over && this.insidePid !== null && !kill(this.insidePid)) this.child.kill('SIGKILL');
    return this.gone;
  }

  private watch(): Promise<void> {
    const { child } = this;
    child.stdin?.on('error', () => undefined);
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr = (this.stderr + chunk.toString('utf8')).slice(0, STDERR_CHARS_MAX)));
    child.stdout?.on('data', (chunk: Buffer) => this.take(chunk));
    return new Promise((resolve) => {
      const end = () => {
        this.over = true;
        this.waiting?.(null);
        this.waiting = null;
        resolve();
      };
      child.once('close', end);
      child.once('error', (error) => {
        this.stderr = error.message;
        end();
      });
    });
  }

  private take(chunk: Buffer): void {
    try {
      this.inbox.push(...(this.reader.feed(chunk) as SupervisorFrame[]));
    } catch (error) {
      this.stderr = `the supervisor sent a malformed frame: ${(error as Error).message}`;
      void this.destroy();
    }
    const next = this.waiting && this.inbox.shift();
    if (next) {
      const resolve = this.waiting;
      this.waiting = null;
      resolve?.(next);
    }
  }

  private readInfo(): void {
    let text = '';
    this.child.stdio[INFO_FD]?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      const found = /"child-pid"\s*:\s*(\d+)/.exec(text);
      if (!found || this.insidePid !== null) return;
      this.insidePid = Number(found[1]);
      if (this.doomed) void this.destroy();
    });
  }

  private hand(fd: number, data: Buffer): void {
    const pipe = this.child.stdio[fd] as Writable | null | undefined;
    pipe?.on('error', () => undefined);
    pipe?.end(data);
  }
}

/** Whether the process was there to be killed. */
function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}
