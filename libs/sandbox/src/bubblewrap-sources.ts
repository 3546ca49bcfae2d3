import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { BUNDLE_FD, type BubblewrapOptions, FIRST_FREE_FD, INFO_FD, nestCommand, singleCommand } from './bubblewrap-command.js';
import { ChannelLink, FrameChannel } from './frames.js';
import type { HostUser, HostUsers } from './host-users.js';
import type { SandboxLink, SandboxShape, SandboxSource } from './sandbox-driver.js';

export interface SourceSettings extends BubblewrapOptions {
  /** The runner, compiled for exactly this interpreter. */
  readonly bundle: Buffer;
  /** The system call filter; null if this architecture has none. */
  readonly seccomp: Buffer | null;
  /** The user that runs bubblewrap; undefined: the user of this process. */
  readonly user: HostUser | undefined;
  /** Users, one for each sandbox; null: all sandboxes run as the user that runs bubblewrap. */
  readonly users: HostUsers | null;
}

/** Starts one bubblewrap and one Python per sandbox. For machines that allow no namespaces inside bubblewrap. */
export class SingleSource implements SandboxSource {
  private readonly live = new Set<BubblewrapProcess>();

  constructor(private readonly settings: SourceSettings) {}

  open(shape: SandboxShape): SandboxLink {
    const { users, seccomp, missing } = this.settings;
    const filtered = seccomp !== null && !missing.has('syscalls');
    const own = users?.take();
    const user = own ?? this.settings.user;
    const process = new BubblewrapProcess(this.settings, singleCommand(this.settings, shape), filtered ? 1 : 0, user, null);
    if (filtered) process.hand(FIRST_FREE_FD, seccomp);
    this.live.add(process);
    void process.gone.then(() => this.live.delete(process));
    void process.gone.then(() => own?.giveBack());
    return process;
  }

  async close(): Promise<void> {
    await Promise.all([...this.live].map((process) => process.destroy()));
  }
}

/** Number of sandboxes that one nest opens before it is replaced. Starting a nest, with a pipe for each, costs as much as ten sandboxes. */
const SLOTS = 96;
/** The next nest is started when this many slots are left, so that no claim waits for Python to start. */
const SLOTS_LOW = 8;

/**
 * Opens sandboxes from nests. A nest is one bubblewrap with a warm interpreter, which forks each sandbox into fresh namespaces. So no
 * execution waits for Python to start. A nest that has opened SLOTS sandboxes is replaced.
 */
export class NestSource implements SandboxSource {
  private nests: Nest[] = [];
  private closed = false;

  constructor(private readonly settings: SourceSettings) {}

  open(shape: SandboxShape): SandboxLink {
    this.nests = this.nests.filter((nest) => nest.alive);
    const usable = this.nests.filter((nest) => nest.slotsLeft > 0);
    const slots = usable.reduce((sum, nest) => sum + nest.slotsLeft, 0);
    const nest = usable[0] ?? this.start();
    if (slots === SLOTS_LOW) setImmediate(() => !this.closed && this.start());
    return nest.open(shape);
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.nests.map((nest) => nest.destroy()));
  }

  private start(): Nest {
    const nest = new Nest(this.settings);
    this.nests.push(nest);
    return nest;
  }
}

const STDERR_CHARS_MAX = 4_000;

/** bubblewrap with one process inside, which sends and receives frames over its stdin and stdout. */
class BubblewrapProcess extends ChannelLink implements SandboxLink {
  protected readonly channel: FrameChannel;
  private readonly child: ChildProcess;
  private insidePid: number | null = null;
  private stderr = '';
  private doomed = false;

  /**
   * @param pipes number of further pipes, from FIRST_FREE_FD on
   * @param user the user that bubblewrap runs as; undefined: the current user. Never root, because the kernel limits no processes of root
   * @param mapped users to map into its user namespace. The command waits for this on its last pipe. null: bubblewrap maps one user
   */
  constructor(
    { bundle }: SourceSettings,
    [program = '', ...args]: readonly string[],
    private readonly pipes: number,
    private readonly user: HostUser | undefined,
    private readonly mapped: HostUsers | null,
  ) {
    super();
    const extra = Array.from({ length: 2 + pipes }, () => 'pipe' as const);
    this.child = spawn(program, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'pipe', ...extra], ...user });
    const { stdin, stdout } = this.child;
    if (!stdin || !stdout) throw new Error('the process has no pipes');
    this.channel = new FrameChannel(stdin, stdout, (error) => this.malformed(error));
    this.watch();
    this.readInfo();
    this.hand(BUNDLE_FD, bundle);
  }

  complaint(): string {
    return this.stderr.trim();
  }

  pipe(fd: number): Duplex {
    return this.child.stdio[fd] as Duplex;
  }

  hand(fd: number, data: Buffer): void {
    this.pipe(fd)
      .on('error', () => undefined)
      .end(data);
  }

  destroy(): Promise<void> {
    this.doomed = true;
    // Kills process 1 inside. The kernel then ends everything inside, and bubblewrap exits. While the pid of process 1 is unknown, nothing
    // is killed, because process 1 would survive bubblewrap. `mapUsers` calls this again when the pid is known.
    if (!this.over && this.insidePid !== null && !kill(this.insidePid)) this.child.kill('SIGKILL');
    return this.gone;
  }

  private watch(): void {
    const { child } = this;
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr = (this.stderr + chunk.toString('utf8')).slice(-STDERR_CHARS_MAX)));
    child.once('close', () => this.end());
    child.once('error', (error) => {
      this.stderr = error.message;
      this.end();
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
    const { mapped, pipes, user } = this;
    if (mapped && !this.doomed) {
      await mapped.map(pid, user ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }).catch((error: Error) => {
        this.stderr = error.message;
        this.doomed = true;
      });
    }
    if (this.doomed) void this.destroy();
    // bubblewrap waits for this byte even if everything inside has ended.
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

/** One nest of a `NestSource`. Each slot is a pipe for one sandbox. */
class Nest extends BubblewrapProcess {
  private readonly sandboxes = new Map<number, NestSandbox>();
  private used = 0;

  constructor(private readonly settings: SourceSettings) {
    const { user, users } = settings;
    const pipes = users ? SLOTS + 1 : SLOTS;
    super(settings, nestCommand(settings, FIRST_FREE_FD, users ? FIRST_FREE_FD + SLOTS : null), pipes, user, users);
    void this.follow();
  }

  get slotsLeft(): number {
    return SLOTS - this.used;
  }

  open({ diskMiB }: SandboxShape): SandboxLink {
    const own = this.settings.users?.take();
    const slot = this.used;
    this.used += 1;
    const sandbox = new NestSandbox(this, slot, () => own?.giveBack());
    this.sandboxes.set(slot, sandbox);
    this.send({ type: 'open', slot, diskMiB, user: own?.inside });
    return sandbox;
  }

  private async follow(): Promise<void> {
    for (let frame = await this.receive(); frame; frame = await this.receive()) {
      if (frame.type === 'gone') this.endSandbox(frame.slot as number);
    }
    await this.gone;
    for (const slot of this.sandboxes.keys()) this.endSandbox(slot);
  }

  private endSandbox(slot: number): void {
    this.sandboxes.get(slot)?.end();
    this.sandboxes.delete(slot);
    if (this.slotsLeft === 0 && this.sandboxes.size === 0) void this.destroy();
  }
}

class NestSandbox extends ChannelLink implements SandboxLink {
  protected readonly channel: FrameChannel;
  private readonly pipe: Duplex;

  constructor(
    private readonly nest: Nest,
    private readonly slot: number,
    private readonly onEnd: () => void,
  ) {
    super();
    this.pipe = nest.pipe(FIRST_FREE_FD + slot);
    this.channel = new FrameChannel(this.pipe, this.pipe, () => void this.destroy());
  }

  complaint(): string {
    return this.nest.complaint();
  }

  destroy(): Promise<void> {
    if (!this.over) this.nest.send({ type: 'destroy', slot: this.slot });
    return this.gone;
  }

  /** Called once no process of the sandbox exists any more. */
  override end(): void {
    this.onEnd();
    super.end();
    this.pipe.destroy();
  }
}
