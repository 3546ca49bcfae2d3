import type { Scope } from '@etude/contracts/memory';
import { type FactPair, judgeTokens } from '@etude/domain/facts/judge-pairs';

/** Two current facts that the rules could not decide on, the later told one second. */
export interface UndecidedPair extends FactPair {
  readonly scope: Scope;
  readonly knownId: string;
  readonly freshId: string;
}

const FACTS_PER_CALL = 5;
const TOKENS_PER_FACT = 500;
const CALL_TOKENS_MAX = FACTS_PER_CALL * TOKENS_PER_FACT;
const WAITING_MAX = 200;

/** What waits of one owner, and what this owner's stored facts have paid for. */
export class UndecidedPairs {
  #waiting: UndecidedPair[] = [];
  #stored = 0;
  #calls = 0;
  #promptTokens = 0;

  /** Once for each stored fact. */
  add(pairs: readonly UndecidedPair[]): void {
    this.#stored += 1;
    this.#waiting = [...this.#waiting, ...pairs].slice(-WAITING_MAX);
  }

  get mayAsk(): boolean {
    return this.#waiting.length > 0 && (this.#calls + 1) * FACTS_PER_CALL <= this.#stored;
  }

  /** For one call: as many as fit the tokens that are left; those told last first. Empty where no call may be made. */
  take(): readonly UndecidedPair[] {
    if (!this.mayAsk) return [];
    const affordable = Math.min(CALL_TOKENS_MAX, this.#stored * TOKENS_PER_FACT - this.#promptTokens);
    const batch: UndecidedPair[] = [];
    while (this.#waiting.length > 0 && judgeTokens([...batch, this.#waiting.at(-1)!]) <= affordable) batch.push(this.#waiting.pop()!);
    if (batch.length > 0) this.#calls += 1;
    return batch;
  }

  spend(promptTokens: number): void {
    this.#promptTokens += promptTokens;
  }
}
