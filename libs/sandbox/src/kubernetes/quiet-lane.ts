interface Chore {
  readonly run: () => Promise<void>;
  readonly addedMs: number;
  readonly done: () => void;
}

export interface LaneLimits {
  /** Chores at the same time. */
  readonly atOnce: number;
  /** A chore waits no longer than this for a quiet moment. */
  readonly waitMaxMs: number;
  readonly now: () => number;
}

/** What has to be done, and not while claims come in. */
export class QuietLane {
  private readonly chores: Chore[] = [];
  private running = 0;

  constructor(private readonly limits: LaneLimits) {}

  get idle(): boolean {
    return this.chores.length === 0 && this.running === 0;
  }

  /** `run` never throws. Resolves when it has run. */
  add(run: () => Promise<void>): Promise<void> {
    return new Promise((done) => this.chores.push({ run, addedMs: this.limits.now(), done }));
  }

  /** Starts what may run now. `free`: this is a quiet moment, or there is no time to wait for one. */
  tick(free: boolean): void {
    for (;;) {
      const next = this.chores[0];
      if (!next || this.running >= this.limits.atOnce) return;
      if (!free && this.limits.now() - next.addedMs < this.limits.waitMaxMs) return;
      this.chores.shift();
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
