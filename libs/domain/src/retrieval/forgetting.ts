/** What forgetting looks at. */
export interface Remembered {
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** ms since it was made or last changed; negative counts as 0. */
  readonly ageMs: number;
  /** How often it was found, told again or called. */
  readonly uses: number;
}

const HALF_LIFE_MS = 90 * 86_400_000;

/**
 * How much speaks for showing a record, 0 to 1: its worth, halved every 90 days. Use slows that down: what was used once lasts twice as
 * long, and each doubling adds as much again, after the forgetting curve with spaced repetition (Ebbinghaus 1885; MemoryBank 2023).
 */
export function forgettingScore({ worth, ageMs, uses }: Remembered): number {
  const strength = 1 + Math.log2(1 + Math.max(0, uses));
  return Math.min(1, Math.max(0, worth)) * 0.5 ** (Math.max(0, ageMs) / (HALF_LIFE_MS * strength));
}
