import { errorCode } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import { isCurrent, superseded } from '@etude/domain/facts/fact-changes';
import { factTime } from '@etude/domain/retrieval/reinforce';
import { type FactPair, judgeRequest, judgeTokens, readVerdicts } from '@etude/domain/facts/judge-pairs';
import type { ChatModel } from '@etude/domain/ports/model';
import { wholeTenant } from '@etude/domain/retrieval/scopes';
import type { RecordStore } from '../record-store.js';
import { untilTaken } from './collisions.js';
import type { LogFailure } from './semantic-access.js';
import { factRecord, knownFact, LAYER } from './semantic-records.js';

/** Two current facts that the rules could not decide on, the later told one second. */
export interface UndecidedPair extends FactPair {
  readonly scope: Scope;
  readonly knownId: string;
  readonly freshId: string;
}

export interface JudgeFigures {
  readonly calls: number;
  readonly promptTokens: number;
  /** Answers that could not be read, and calls that failed. */
  readonly failures: number;
  readonly pairs: number;
  readonly superseded: number;
}

const FACTS_PER_CALL = 5;
const TOKENS_PER_FACT = 500;
const CALL_TOKENS_MAX = FACTS_PER_CALL * TOKENS_PER_FACT;
const WAITING_MAX = 200;

/**
 * Asks a chat model about pairs that wait, many in one call: never more than one call for five stored facts, nor 500 tokens for one.
 * What is not answered in a way that can be read stays undecided. Pairs wait in this process alone; those that it loses stay so too.
 */
export class PairJudge {
  readonly #store: RecordStore;
  readonly #model: ChatModel;
  readonly #log: LogFailure;
  #waiting: UndecidedPair[] = [];
  #stored = 0;
  #asking: Promise<void> = Promise.resolve();
  #figures = { calls: 0, promptTokens: 0, failures: 0, pairs: 0, superseded: 0 };

  constructor(store: RecordStore, model: ChatModel, log: LogFailure) {
    this.#store = store;
    this.#model = model;
    this.#log = log;
  }

  get figures(): JudgeFigures {
    return this.#figures;
  }

  /** Once for each stored fact, with what was left open about it. Asks behind the caller's back. */
  offer(pairs: readonly UndecidedPair[]): void {
    this.#stored += 1;
    this.#waiting = [...this.#waiting, ...pairs].slice(-WAITING_MAX);
    if (this.#waiting.length > 0 && this.#mayAsk()) this.#asking = this.#asking.then(() => this.#ask());
  }

  /** Resolves when nobody is being asked. */
  settle(): Promise<void> {
    return this.#asking;
  }

  #mayAsk(): boolean {
    return (this.#figures.calls + 1) * FACTS_PER_CALL <= this.#stored;
  }

  async #ask(): Promise<void> {
    const pairs = this.#nextBatch();
    if (pairs.length === 0) return;
    this.#figures.calls += 1;
    this.#figures.pairs += pairs.length;
    try {
      const answer = await this.#model.chat(judgeRequest(pairs), new AbortController().signal);
      this.#figures.promptTokens += answer.inputTokens;
      const verdicts = readVerdicts(answer.text, pairs.length);
      if (verdicts === null) this.#fail('the answer could not be read');
      for (const at of verdicts ?? []) this.#figures.superseded += (await supersede(this.#store, pairs[at]!)) ? 1 : 0;
    } catch (error) {
      this.#fail(errorCode(error));
    }
  }

  /** As many as fit the tokens that stored facts have paid for; those told last first. */
  #nextBatch(): readonly UndecidedPair[] {
    if (!this.#mayAsk()) return [];
    const affordable = Math.min(CALL_TOKENS_MAX, this.#stored * TOKENS_PER_FACT - this.#figures.promptTokens);
    const batch: UndecidedPair[] = [];
    while (this.#waiting.length > 0 && judgeTokens([...batch, this.#waiting.at(-1)!]) <= affordable) batch.push(this.#waiting.pop()!);
    return batch;
  }

  #fail(reason: string): void {
    this.#figures.failures += 1;
    this.#log('contradictions stay undecided', { reason, failures: this.#figures.failures });
  }
}

/** The one that is true since later stays. Whether one of them went. */
async function supersede(store: RecordStore, { scope, knownId, freshId }: UndecidedPair): Promise<boolean> {
  return untilTaken(`fact ${freshId}`, async () => {
    const records = await store.load(wholeTenant(scope), LAYER, 'fact', [knownId, freshId]);
    const [known, fresh] = [knownId, freshId]
      .map((id) => records.find(({ key }) => key === id))
      .map((record) => record && knownFact(record, 0));
    if (!known || !fresh || !isCurrent(known.fact) || !isCurrent(fresh.fact)) return false;
    const [older, newer] = factTime(known.fact) <= factTime(fresh.fact) ? [known, fresh] : [fresh, known];
    const replaced = superseded(older.fact, { id: newer.fact.id, at: factTime(newer.fact) });
    // The one that stays is written as well, so that nobody supersedes it at the same time.
    const done = await store.write(scope.tenant, [
      { do: 'update', record: factRecord(newer.fact, newer.takenInOrder), revision: newer.record.revision },
      { do: 'update', record: factRecord(replaced, older.takenInOrder), revision: older.record.revision },
    ]);
    return done.includes(false) ? null : true;
  });
}
