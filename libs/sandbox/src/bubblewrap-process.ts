import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { FrameChannel, type SupervisorFrame } from './frames.js';
import type { HostUser, HostUsers } from './host-users.js';
import type { SandboxLink } from './sandbox-driver.js';

/** Descriptors of bubblewrap besides stdin, stdout and stderr. Each command has its own use for FIRST_FREE_FD and above. */
export const INFO_FD = 3;
export const BUNDLE_FD = 4;
export const FIRST_FREE_FD = 5;

export interface Launch {
  readonly command: readonly string[];
  readonly bundle: Buffer;
  /** Number of further pipes, from FIRST_FREE_FD on. */
  readonly pipes: number;
  /** The user that the process runs as; undefined: the current one. Never root, because the kernel limits no processes of root. */
  readonly user: HostUser | undefined;
  /** Users to map into its user namespace, for which the command waits on its last pipe. Absent: bubblewrap maps one itself. */
  readonly mapped?: HostUsers | null;
}

const STDERR_CHARS_MAX = 4_000;

/** Frames over pipes of this machine, which last as long as their reader. */
export abstract class PipeLink {
  protected abstract readonly channel: FrameChannel;
  protected over = false;

  get alive(): boolean {
    return !this.over;
  }

  send(frame: SupervisorFrame): void {
    this.channel.send(frame);
  }

  receive(): Promise<SupervisorFrame | null> {
    return this.channel.receive();
  }
}

/** bubblewrap with one process inside, spoken to in frames over its stdin and stdout. */
export class BubblewrapProcess extends PipeLink implements SandboxLink {
  /** Resolves when bubblewrap and everything inside it have ended. */
  readonly gone: Promise<void>;
  protected readonly channel: FrameChannel;
  private readonly child: ChildProcess;
  private readonly launch: Launch;
  private insidePid: number | null = null;
  private stderr = '';
  private doomed = false;

  constructor(launch: Launch) {
    super();
    const { command, bundle, pipes, user } = launch;
    const [program = '', ...args] = command;
    const extra = Array.from({ length: 2 + pipes }, () => 'pipe' as const);
    this.launch = launch;
    this.child = spawn(program, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'pipe', ...extra], ...user });
    const { stdin, stdout } = this.child;
    if (!stdin || !stdout) throw new Error('the process has no pipes');
    this.channel = new FrameChannel(stdin, stdout, (error) => this.malformed(error));
    this.gone = this.watch();
    this.readInfo();
    this.hand(BUNDLE_FD, bundle);
  }

  complaint(): string {
    return this.stderr.trim();
  }

  pipe(fd: number): Duplex {
    return this.child.stdio[fd] as Duplex;
  }

  /** Writes `data` to the pipe `fd` and closes it; the other side reads to the end. */
  hand(fd: number, data: Buffer): void {
    this.pipe(fd)
      .on('error', () => undefined)
      .end(data);
  }

  destroy(): Promise<void> {
    this.doomed = true;
    // Kills process 1 inside: the kernel ends everything inside with it, and then bubblewrap exits. Before process 1 is known nothing is
    // killed, because bubblewrap would leave an orphan. `readInfo` then calls this again.
    if (!this.over && this.insidePid !== null && !kill(this.insidePid)) this.child.kill('SIGKILL');
    return this.gone;
  }

  private watch(): Promise<void> {
    const { child } = this;
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr = (this.stderr + chunk.toString('utf8')).slice(-STDERR_CHARS_MAX)));
    return new Promise((resolve) => {
      const end = () => {
        this.over = true;
        this.channel.end();
        resolve();
      };
      child.once('close', end);
      child.once('error', (error) => {
        this.stderr = error.message;
        end();
      });
    });
  }

  private malformed(error: Error): void {
    this.stderr = `the sandbox sent a malformed frame: ${error.message}`;
    void this.destroy();
  }

  private readInfo(): void {
    let text = '';
    this.pipe(INFO_FD).on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      const found = /"child-pid"\s*:\s*(\d+)/.exec(text);
      if (!found || this.insidePid !== null) return;
      this.insidePid = Number(found[1]);
      void this.mapUsers(this.insidePid);
    });
  }

  private async mapUsers(pid: number): Promise<void> {
    const { mapped, pipes, user } = this.launch;
    if (mapped && !this.doomed) {
      await mapped.map(pid, user ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }).catch((error: Error) => {
        this.stderr = error.message;
        this.doomed = true;
      });
    }
    if (this.doomed) void this.destroy();
    // bubblewrap waits for this even if all inside has ended.
    if (mapped) this.hand(BUNDLE_FD + pipes, Buffer.alloc(1));
  }
}

/** @returns whether the process existed */
function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}
