import { type BubblewrapOptions, nestCommand, singleCommand } from './bubblewrap-command.js';
import { BubblewrapProcess, FIRST_FREE_FD, PipeLink } from './bubblewrap-process.js';
import { FrameChannel } from './frames.js';
import type { HostUser, HostUsers } from './host-users.js';
import type { SandboxLink, SandboxShape, SandboxSource } from './sandbox-driver.js';

export interface SourceSettings extends BubblewrapOptions {
  readonly bundle: Buffer;
  /** The system call filter; null if this architecture has none. */
  readonly seccomp: Buffer | null;
  /** Who starts bubblewrap; undefined: the user of this process. */
  readonly user: HostUser | undefined;
  /** A user for each sandbox; null: all run as the one who starts bubblewrap. */
  readonly users: HostUsers | null;
}

/** Starts one bubblewrap and one Python per sandbox. For machines that allow no namespaces inside bubblewrap. */
export class SingleSource implements SandboxSource {
  private readonly live = new Set<BubblewrapProcess>();

  constructor(private readonly settings: SourceSettings) {}

  open(shape: SandboxShape): SandboxLink {
    const { bundle, users, seccomp, missing } = this.settings;
    const filtered = seccomp !== null && !missing.has('syscalls');
    const own = users?.take();
    const user = own ?? this.settings.user;
    const process = new BubblewrapProcess({ command: singleCommand(this.settings, shape), bundle, pipes: filtered ? 1 : 0, user });
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

/** Number of sandboxes that one nest opens before it is replaced. Its pipes exist from its start. A nest costs as much as ten sandboxes. */
const SLOTS = 96;
/** The next nest is started when this many slots are left, so that no claim waits for Python to start. */
const SLOTS_LOW = 8;

/**
 * Opens sandboxes from a warm interpreter inside bubblewrap, a nest, each in fresh namespaces. No Python is started for an execution.
 * A nest that has opened SLOTS sandboxes is replaced.
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

class Nest {
  private readonly process: BubblewrapProcess;
  private readonly sandboxes = new Map<number, NestSandbox>();
  private used = 0;

  constructor(private readonly settings: SourceSettings) {
    const { bundle, user, users } = settings;
    const pipes = users ? SLOTS + 1 : SLOTS;
    const command = nestCommand(settings, FIRST_FREE_FD, users ? FIRST_FREE_FD + SLOTS : null);
    this.process = new BubblewrapProcess({ command, bundle, pipes, user, mapped: users });
    void this.follow();
  }

  get alive(): boolean {
    return this.process.alive;
  }

  get slotsLeft(): number {
    return SLOTS - this.used;
  }

  open({ diskMiB }: SandboxShape): SandboxLink {
    const own = this.settings.users?.take();
    const slot = this.used;
    this.used += 1;
    const sandbox = new NestSandbox(this.process, slot, () => own?.giveBack());
    this.sandboxes.set(slot, sandbox);
    this.process.send({ type: 'open', slot, diskMiB, user: own?.inside });
    return sandbox;
  }

  destroy(): Promise<void> {
    return this.process.destroy();
  }

  private async follow(): Promise<void> {
    for (let frame = await this.process.receive(); frame; frame = await this.process.receive()) {
      if (frame.type === 'gone') this.end(frame.slot as number);
    }
    await this.process.gone;
    for (const slot of this.sandboxes.keys()) this.end(slot);
  }

  private end(slot: number): void {
    this.sandboxes.get(slot)?.end();
    this.sandboxes.delete(slot);
    if (this.slotsLeft === 0 && this.sandboxes.size === 0) void this.process.destroy();
  }
}

class NestSandbox extends PipeLink implements SandboxLink {
  readonly gone: Promise<void>;
  protected readonly channel: FrameChannel;
  private resolveGone: () => void = () => undefined;

  constructor(
    private readonly nest: BubblewrapProcess,
    private readonly slot: number,
    private readonly onEnd: () => void,
  ) {
    super();
    const pipe = nest.pipe(FIRST_FREE_FD + slot);
    this.channel = new FrameChannel(pipe, pipe, () => void this.destroy());
    this.gone = new Promise((resolve) => (this.resolveGone = resolve));
  }

  complaint(): string {
    return this.nest.complaint();
  }

  destroy(): Promise<void> {
    if (!this.over) this.nest.send({ type: 'destroy', slot: this.slot });
    return this.gone;
  }

  /** Called once the sandbox has ended, alone or with its nest. */
  end(): void {
    this.over = true;
    this.onEnd();
    this.channel.end();
    this.nest.pipe(FIRST_FREE_FD + this.slot).destroy();
    this.resolveGone();
  }
}
