import type { RecordStore } from '../record-store.js';
import type { LogFailure } from './fact-access.js';
import { factRecord, knownFact, LAYER, RELATED_MIN } from './fact-records.js';
import type { TakenFact } from './fact-writes.js';
import { untilTaken } from './records.js';
import { errorCode } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import { isCurrent, superseded } from '@etude/domain/facts/fact-plan';
import { type FactPair, judgeRequest, judgeTokens, readVerdicts } from '@etude/domain/facts/judge-pairs';
import type { ChatModel } from '@etude/domain/ports/model';
import { factTime } from '@etude/domain/retrieval/reinforce';
import { wholeTenant } from '@etude/domain/retrieval/scopes';

/** Two current facts that may contradict each other and that the rules can't decide on. `fresh` is the one told later. */
interface UndecidedPair extends FactPair {
  readonly scope: Scope;
  readonly knownId: string;
  readonly freshId: string;
}

/** An owner's budget: one model call per this many stored facts, and this many prompt tokens for each of them. */
const FACTS_PER_CALL = 5;
const TOKENS_PER_FACT = 500;
const PAIRS_MAX = 200;
/** Maximum number of known facts that are compared with one new fact. */
const OPEN_MAX = 4;
/** Beyond this number, the least recently active owner is dropped and its pairs stay undecided. */
const OWNERS_MAX = 1_000;

/** One owner's waiting pairs, and the number of facts stored since the last call. */
interface Owner {
  pairs: UndecidedPair[];
  facts: number;
  asking: Promise<void>;
}

/**
 * Asks a chat model about undecided pairs, several in one call. Each owner has its own queue, budget and prompts. So one owner's facts
 * never reach another's prompt. A pair without a readable answer stays undecided. Waiting pairs are kept only in this process.
 */
export class PairJudge {
  readonly #store: RecordStore;
  readonly #model: ChatModel;
  readonly #log: LogFailure;
  /** By scope, the most recently active owner last. */
  readonly #owners = new Map<string, Owner>();

  constructor(store: RecordStore, model: ChatModel, log: LogFailure) {
    this.#store = store;
    this.#model = model;
    this.#log = log;
  }

  /** Queues the undecided pairs of a stored fact. Call it once for each stored fact. The model is asked in the background. */
  offer({ fact, isAdded, undecided }: TakenFact): void {
    const { scope, id: freshId, text: fresh } = fact;
    const near = isAdded && isCurrent(fact) ? undecided.filter(({ similarity }) => similarity >= RELATED_MIN).slice(0, OPEN_MAX) : [];
    const pairs = near.map(({ fact: known }) => ({ scope, knownId: known.id, freshId, known: known.text, fresh }));
    const owner = this.#owner(scope);
    owner.facts += 1;
    owner.pairs = [...owner.pairs, ...pairs].slice(-PAIRS_MAX);
    const asked = owner.facts < FACTS_PER_CALL ? [] : affordable(owner.pairs);
    if (asked.length === 0) return;
    owner.facts -= FACTS_PER_CALL;
    owner.pairs = owner.pairs.slice(0, -asked.length);
    owner.asking = owner.asking.then(() => this.#ask(asked));
  }

  /** Resolves when no model call is running. */
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

/** The latest pairs that fit into the token budget of one call, latest first. */
function affordable(pairs: readonly UndecidedPair[]): readonly UndecidedPair[] {
  const taken: UndecidedPair[] = [];
  for (const pair of pairs.toReversed()) {
    if (judgeTokens([...taken, pair]) > FACTS_PER_CALL * TOKENS_PER_FACT) break;
    taken.push(pair);
  }
  return taken;
}

/** Keeps the fact that became true later, and marks the other as superseded by it. */
async function supersede(store: RecordStore, { scope, knownId, freshId }: UndecidedPair): Promise<void> {
  await untilTaken(`fact ${freshId}`, async () => {
    const records = await store.load(wholeTenant(scope), LAYER, 'fact', [knownId, freshId]);
    const current = records.map((record) => knownFact(record, 0)).filter(({ fact }) => isCurrent(fact));
    const ordered = [knownId, freshId].flatMap((id) => current.find(({ fact }) => fact.id === id) ?? []);
    const [older, newer] = ordered.toSorted((a, b) => factTime(a.fact) - factTime(b.fact));
    if (older === undefined || newer === undefined) return true;
    const replaced = superseded(older.fact, { id: newer.fact.id, at: factTime(newer.fact) });
    // Writing the newer fact too makes this write fail if somebody supersedes that fact at the same time.
    const done = await store.write(scope.tenant, [
      { do: 'update', record: factRecord(newer.fact, newer.taken), revision: newer.record.revision },
      { do: 'update', record: factRecord(replaced, older.taken), revision: older.record.revision },
    ]);
    return done.includes(false) ? null : true;
  });
}
