import type { TenantPoints } from './tenant-points.js';

/** Of many it need not be known to the last one how many they are. */
const MANY = 1_000;
const KEPT_MS = 10_000;

/** How many records with words a tenant has in each layer, as the server counts them, for a while where they are many. */
export class WordedCounts {
  readonly #kept = new Map<string, { readonly count: number; readonly until: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** null where it has to be asked for. */
  kept({ tenant }: TenantPoints, collection: string): number | null {
    const kept = this.#kept.get(`${collection} ${tenant}`);
    if (kept !== undefined && kept.until > this.#now()) return kept.count;
    this.#kept.delete(`${collection} ${tenant}`);
    return null;
  }

  keep({ tenant }: TenantPoints, collection: string, count: number): void {
    if (count >= MANY) this.#kept.set(`${collection} ${tenant}`, { count, until: this.#now() + KEPT_MS });
  }
}

/**
 * How many records with words a tenant has, with those that it has deleted: a server counts them until it writes their segment anew. In
 * the weight of the word that all records have, ln((N + 1) / (df + 1/2)), df is just that.
 */
export function countedIn(anchorScore: number, presenceScore: number): number {
  return Math.round(Math.exp(allIn(anchorScore) - presenceScore) - 0.5);
}

/**
 * How much a server that counts records of all tenants gives each word too much.
 *
 * The weight of a word is ln((N + 1) / (df + 1/2)). df is the tenant's, since its words have numbers of their own, and N is
 * that of the collection: so with n records of the tenant every word has ln((N + 1) / (n + 1)) too much, whichever it is. N as
 * the server counts it is seen in the score of the anchor: one point that has a word of its own, so df = 1 and the weight 1.
 */
export function surplusOf(anchorScore: number, worded: number): number {
  return allIn(anchorScore) - Math.log(worded + 1);
}

/** ln(N + 1) */
function allIn(anchorScore: number): number {
  return anchorScore + Math.log(1.5);
}
