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

/** Two current facts that the rules could not decide on, the later told one second. */
export interface UndecidedPair extends FactPair {
  readonly scope: Scope;
  readonly knownId: string;
  readonly freshId: string;
}

/** One call for so many stored facts, and so many tokens of its prompt for each of them. */
const FACTS_PER_CALL = 5;
const TOKENS_PER_FACT = 500;
const PAIRS_MAX = 200;
/** The owner who stored nothing for longest is forgotten; its pairs stay undecided. */
const OWNERS_MAX = 1_000;

/** The pairs of one owner that wait, and the facts that were stored since the last call. */
interface Owner {
  pairs: UndecidedPair[];
  facts: number;
  asking: Promise<void>;
}

/**
 * Asks a chat model about undecided pairs, many in one call. Every owner has a queue, a budget and prompts of its own: one owner's facts
 * never reach another's prompt, nor cost its budget. A pair without a readable answer stays undecided. Pairs wait in this process alone.
 */
export class PairJudge {
  readonly #store: RecordStore;
  readonly #model: ChatModel;
  readonly #log: LogFailure;
  /** By scope; the owner who stored last is last. */
  readonly #owners = new Map<string, Owner>();

  constructor(store: RecordStore, model: ChatModel, log: LogFailure) {
    this.#store = store;
    this.#model = model;
    this.#log = log;
  }

  /** Once for each stored fact, with its undecided pairs. Asks behind the caller's back. */
  offer(scope: Scope, pairs: readonly UndecidedPair[]): void {
    const owner = this.#owner(scope);
    owner.facts += 1;
    owner.pairs = [...owner.pairs, ...pairs].slice(-PAIRS_MAX);
    const asked = owner.facts < FACTS_PER_CALL ? [] : affordable(owner.pairs);
    if (asked.length === 0) return;
    owner.facts -= FACTS_PER_CALL;
    owner.pairs = owner.pairs.slice(0, -asked.length);
    owner.asking = owner.asking.then(() => this.#ask(asked));
  }

  /** Resolves when no call is under way. */
  async settle(): Promise<void> {
    await Promise.all(Array.from(this.#owners.values(), ({ asking }) => asking));
  }

  #owner({ tenant, agent, user }: Scope): Owner {
    const name = JSON.stringify([tenant, agent, user]);
    const owner = this.#owners.get(name) ?? { pairs: [], facts: 0, asking: Promise.resolve() };
    this.#owners.delete(name);
    this.#owners.set(name, owner);
    for (const [longest] of this.#owners) if (this.#owners.size > OWNERS_MAX) this.#owners.delete(longest);
    return owner;
  }

  async #ask(pairs: readonly UndecidedPair[]): Promise<void> {
    try {
      const answer = await this.#model.chat(judgeRequest(pairs), new AbortController().signal);
      const verdicts = readVerdicts(answer.text, pairs.length);
      if (verdicts === null) this.#log('contradictions stay undecided', { reason: 'the answer could not be read' });
      for (const at of verdicts ?? []) await supersede(this.#store, pairs[at]!);
    } catch (error) {
      this.#log('contradictions stay undecided', { reason: errorCode(error) });
    }
  }
}

/** The latest pairs, as many as one call may hold; the latest is first. */
function affordable(pairs: readonly UndecidedPair[]): readonly UndecidedPair[] {
  const taken: UndecidedPair[] = [];
  for (const pair of pairs.toReversed()) {
    if (judgeTokens([...taken, pair]) > FACTS_PER_CALL * TOKENS_PER_FACT) break;
    taken.push(pair);
  }
  return taken;
}

/** The fact that is true since later stays. */
async function supersede(store: RecordStore, { scope, knownId, freshId }: UndecidedPair): Promise<void> {
  await untilTaken(`fact ${freshId}`, async () => {
    const records = await store.load(wholeTenant(scope), LAYER, 'fact', [knownId, freshId]);
    const current = records.map((record) => knownFact(record, 0)).filter(({ fact }) => isCurrent(fact));
    const ordered = [knownId, freshId].flatMap((id) => current.find(({ fact }) => fact.id === id) ?? []);
    const [older, newer] = ordered.toSorted((a, b) => factTime(a.fact) - factTime(b.fact));
    if (older === undefined || newer === undefined) return true;
    const replaced = superseded(older.fact, { id: newer.fact.id, at: factTime(newer.fact) });
    // The newer one is written as well, so that it isn't superseded at the same time.
    const done = await store.write(scope.tenant, [
      { do: 'update', record: factRecord(newer.fact, newer.takenInOrder), revision: newer.record.revision },
      { do: 'update', record: factRecord(replaced, older.takenInOrder), revision: older.record.revision },
    ]);
    return done.includes(false) ? null : true;
  });
}
