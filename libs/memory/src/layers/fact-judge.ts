import type { RecordStore } from '../record-store.js';
import type { LogFailure } from './fact-access.js';
import { factRecord, knownFact, LAYER } from './fact-records.js';
import { untilTaken } from './records.js';
import { errorCode } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import { isCurrent, superseded } from '@etude/domain/facts/fact-changes';
import { type FactPair, judgeRequest, judgeTokens, readVerdicts } from '@etude/domain/facts/judge-pairs';
import type { ChatModel } from '@etude/domain/ports/model';
import { factTime } from '@etude/domain/retrieval/reinforce';
import { wholeTenant } from '@etude/domain/retrieval/scopes';

export interface JudgeFigures {
  readonly calls: number;
  readonly promptTokens: number;
  /** Answers that could not be read, and calls that failed. */
  readonly failures: number;
  readonly pairs: number;
  readonly superseded: number;
}

/** Whose pairs are kept at the same time; those of who told nothing for longest are let go, and stay undecided. */
const OWNERS_MAX = 1_000;

interface Owner {
  readonly pairs: UndecidedPairs;
  asking: Promise<void>;
}

/**
 * Asks a chat model about pairs that wait, many in one call: never more than one call for five stored facts, nor 500 tokens for one.
 * Every owner has a queue, a budget and prompts of its own: what one tells never reaches a prompt about another's facts, nor costs it.
 * What is not answered in a way that can be read stays undecided. Pairs wait in this process alone; those that it loses stay so too.
 */
export class PairJudge {
  readonly #store: RecordStore;
  readonly #model: ChatModel;
  readonly #log: LogFailure;
  /** By scope; who told last is last. */
  readonly #owners = new Map<string, Owner>();
  readonly #asking = new Set<Promise<void>>();
  #figures = { calls: 0, promptTokens: 0, failures: 0, pairs: 0, superseded: 0 };

  constructor(store: RecordStore, model: ChatModel, log: LogFailure) {
    this.#store = store;
    this.#model = model;
    this.#log = log;
  }

  /** Of all owners together. */
  get figures(): JudgeFigures {
    return this.#figures;
  }

  /** Once for each fact that the owner stored, with what was left open about it. Asks behind the caller's back. */
  offer(scope: Scope, pairs: readonly UndecidedPair[]): void {
    const owner = this.#owner(scope);
    owner.pairs.add(pairs);
    if (!owner.pairs.mayAsk) return;
    const asking = owner.asking.then(() => this.#ask(owner.pairs)).finally(() => this.#asking.delete(asking));
    owner.asking = asking;
    this.#asking.add(asking);
  }

  /** Resolves when nobody is being asked. */
  async settle(): Promise<void> {
    while (this.#asking.size > 0) await Promise.all(this.#asking);
  }

  #owner({ tenant, agent, user }: Scope): Owner {
    const name = JSON.stringify([tenant, agent, user]);
    const owner = this.#owners.get(name) ?? { pairs: new UndecidedPairs(), asking: Promise.resolve() };
    this.#owners.delete(name);
    this.#owners.set(name, owner);
    for (const [longest] of this.#owners) if (this.#owners.size > OWNERS_MAX) this.#owners.delete(longest);
    return owner;
  }

  async #ask(waiting: UndecidedPairs): Promise<void> {
    const pairs = waiting.take();
    if (pairs.length === 0) return;
    this.#figures.calls += 1;
    this.#figures.pairs += pairs.length;
    try {
      const answer = await this.#model.chat(judgeRequest(pairs), new AbortController().signal);
      waiting.spend(answer.inputTokens);
      this.#figures.promptTokens += answer.inputTokens;
      const verdicts = readVerdicts(answer.text, pairs.length);
      if (verdicts === null) this.#fail('the answer could not be read');
      for (const at of verdicts ?? []) this.#figures.superseded += (await supersede(this.#store, pairs[at]!)) ? 1 : 0;
    } catch (error) {
      this.#fail(errorCode(error));
    }
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
