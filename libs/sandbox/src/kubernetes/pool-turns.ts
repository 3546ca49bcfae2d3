/** How often a pool is looked at without an event, while work is left and while none is. */
const TICK_MS = 25;
const IDLE_TICK_MS = 1_000;

/** Looks after a pool soon after each change, once for all that come together, and every so often without any. */
export class PoolRounds {
  private timer: NodeJS.Timeout | undefined;
  private due = false;
  private running = false;

  /** @param look says whether there is something that time alone will bring on */
  constructor(private readonly look: () => boolean) {}

  start(): void {
    this.running = true;
    this.changed();
  }

  stop(): void {
    this.running = false;
    clearTimeout(this.timer);
  }

  changed(): void {
    if (this.due || !this.running) return;
    this.due = true;
    setImmediate(() => this.round());
  }

  private round(): void {
    this.due = false;
    if (!this.running) return;
    const busy = this.look();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(), busy ? TICK_MS : IDLE_TICK_MS);
  }
}

interface Chore {
  readonly run: () => Promise<void>;
  readonly addedMs: number;
  readonly done: () => void;
}

export interface LaneLimits {
  /** Chores at the same time. */
  readonly atOnce: number;
  /** From the start of one to the start of the next. */
  readonly everyMs: number;
  /** A chore waits no longer than this for a quiet moment. */
  readonly waitMaxMs: number;
  readonly now: () => number;
}

/** Chores that wait for a quiet moment, when no claims come in. */
export class QuietLane {
  private readonly chores: Chore[] = [];
  private running = 0;
  private lastMs = -Infinity;

  constructor(private readonly limits: LaneLimits) {}

  get idle(): boolean {
    return this.chores.length === 0 && this.running === 0;
  }

  /** `run` never throws. Resolves when it has run. */
  add(run: () => Promise<void>): Promise<void> {
    return new Promise((done) => this.chores.push({ run, addedMs: this.limits.now(), done }));
  }

  /** Starts what may run now. `quiet`: there is time. `pressed`: something waits for it. */
  tick(moment: 'busy' | 'quiet' | 'pressed'): void {
    const { now, atOnce, everyMs, waitMaxMs } = this.limits;
    for (;;) {
      const next = this.chores[0];
      if (!next || this.running >= atOnce) return;
      if (moment !== 'pressed' && now() - this.lastMs < everyMs) return;
      if (moment === 'busy' && now() - next.addedMs < waitMaxMs) return;
      this.chores.shift();
      this.lastMs = now();
      void this.run(next);
    }
  }

  private async run({ run, done }: Chore): Promise<void> {
    this.running += 1;
    await run();
    this.running -= 1;
    done();
  }
}
