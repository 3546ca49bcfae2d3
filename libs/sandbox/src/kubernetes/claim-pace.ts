/** The rate is taken over this long. */
const WINDOW_MS = 10_000;
const REMEMBERED_MAX = 4_096;

/** When claims came, which tells when there is time for something else. */
export class ClaimPace {
  private readonly times: number[] = [];

  constructor(private readonly now: () => number) {}

  note(): void {
    this.times.push(this.now());
    if (this.times.length > REMEMBERED_MAX) this.times.shift();
  }

  /** No claim for so long. */
  quietFor(ms: number): boolean {
    const last = this.times.at(-1);
    return last === undefined || this.now() - last >= ms;
  }

  /** Claims per ms. */
  get rate(): number {
    const since = this.now() - WINDOW_MS;
    while (this.times.length > 0 && (this.times[0] ?? 0) < since) this.times.shift();
    return this.times.length / WINDOW_MS;
  }
}
