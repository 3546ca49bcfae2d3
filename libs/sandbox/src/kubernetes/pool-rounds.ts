/** How often is looked after what is not told by an event: whether it is quiet, what is late. */
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
