/** The time is looked at in so many parts. */
const PARTS = 4;

/**
 * How many pods have been missing all the time for a while.
 *
 * While claims go on some pod is missing at almost any moment, each for as long as its replacement takes; only what is missing all the
 * time is what nobody replaces.
 */
export class LastingShortage {
  /** The least that was missing in each part, the present one last. Before the first is over nothing is known to be replaced by anybody. */
  private readonly least = Array.from({ length: PARTS + 1 }, () => Infinity);
  private sinceMs: number | null = null;

  /** @param whileMs what has been missing for less is not told; it is after a quarter more at most */
  constructor(private readonly whileMs: number) {}

  /** @param missing at this moment @returns how many are lasting */
  note(missing: number, nowMs: number): number {
    this.sinceMs ??= nowMs;
    if (nowMs - this.sinceMs >= this.whileMs / PARTS) {
      this.least.shift();
      this.least.push(missing);
      this.sinceMs = nowMs;
    }
    this.least[PARTS] = Math.min(this.least[PARTS] ?? missing, missing);
    return Math.min(...this.least);
  }
}
