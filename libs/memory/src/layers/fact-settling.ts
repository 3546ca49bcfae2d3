import type { Change, RecordStore, StoredRecord } from '../record-store.js';
import { changedRecord, FACTS, factRecord, knownFact, LAYER, loadFacts, namedFact, type StoredKnownFact } from './fact-records.js';
import { type LayerDeps, rewriteOf, untilTaken } from './records.js';
import { isOnlyThisAnswer } from '@etude/contracts/errors';
import type { Fact, FactDecision, Scope } from '@etude/contracts/memory';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import { decided, decisionAbout, ended, type FactsOfPair, isCurrent, pairOf, undone } from '@etude/domain/facts/fact-plan';
import { type FactPair, judgeRequest, judgeTokens, type PairVerdict, readVerdicts, promptTokens } from '@etude/domain/facts/fact-prompts';
import { chargedTo, type ChatModel, type ChatRequest, type ChatResponse } from '@etude/domain/ports/model';
import type { ReadScope } from '@etude/domain/ports/memory';
import { isSameOwner } from '@etude/domain/skills/life/skill-life';

export interface SettlingBudget {
  left(): Promise<{ readonly calls: number; readonly promptTokens: number }>;
  /** Counts one call, before it is made. @param promptTokens estimated */
  charge(promptTokens: number): Promise<void>;
}

export interface SettlingDeps {
  readonly model: ChatModel;
  readonly budget: SettlingBudget;
  /** Whether settling is switched on for an agent. Other agents' facts and turns are left as they are. */
  readonly isOn: (agent: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** Current facts that wait for a comparison with similar facts. */
export const UNSETTLED = { kinds: ['fact'], shown: true, where: { status: 'unsettled' } } as const;
const PAGE = 500;
/** A decision can lead to another pair to compare, so facts are read again until nothing changes. */
const PASSES_MAX = 20;
const CHAIN_MAX = 20;
const CALL_TOKENS_MAX = 4_000;
const CALL_PAIRS_MAX = 60;
const NO_ANSWER: PairVerdict = { verdict: 'differs', reason: 'the judge gave no readable answer; both are kept' };

/** Asks the model and counts the call. null if no readable answer came; any other failure is thrown. */
export async function askWithin({ budget, model, signal }: SettlingDeps, request: ChatRequest): Promise<ChatResponse | null> {
  await budget.charge(promptTokens(request));
  return model.chat(request, signal).catch((error: unknown) => {
    if (!isOnlyThisAnswer(error)) throw error;
    return null;
  });
}

/** The first items, as many as fit into one call and the budget. A first item that exceeds the size of a call is returned alone. */
export async function affordable<T>(
  items: readonly T[],
  tokensOf: (some: readonly T[]) => number,
  { budget }: SettlingDeps,
): Promise<readonly T[]> {
  const left = await budget.left();
  if (left.calls < 1) return [];
  const isWithin = (count: number, tokens: number) => tokensOf(items.slice(0, count)) <= tokens;
  let count = 0;
  while (count < items.length && isWithin(count + 1, Math.min(left.promptTokens, CALL_TOKENS_MAX))) count += 1;
  return items.slice(0, count === 0 && isWithin(1, left.promptTokens) ? 1 : count);
}

/**
 * Compares the unsettled facts of a tenant with the facts near them, newest facts first, several pairs in one model call. Facts of
 * different owners are never in one call. Each decision is stored at once, so a repeat after a crash asks only about the rest.
 *
 * @returns the number of calls, the number of decisions by verdict, and in `left` the number of pairs that exceeded the budget
 * @throws EtudeError of the model: MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED; an AbortError when `signal` aborts
 */
export async function settleFacts(deps: LayerDeps, tenant: string, settling: SettlingDeps) {
  const counts = { same: 0, replaces: 0, differs: 0 };
  const judging = { modelCalls: 0, left: 0, by: '' };
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    judging.left = 0;
    let asked = 0;
    for (const [scope, facts] of await unsettledByOwner(deps.store, tenant, settling)) {
      const pairs = await openPairs(deps, scope, facts);
      const charged = { ...settling, model: chargedTo(settling.model, scope, 'settle') };
      for await (const [pair, verdict] of verdictsOn(pairs, charged, judging)) {
        asked += 1;
        const decision = { ...verdict, other: pair.older.id, by: judging.by, at: deps.clock.now() };
        if (await decide(deps, scope, pair, decision)) counts[verdict.verdict] += 1;
      }
    }
    if (asked === 0) break;
  }
  return { modelCalls: judging.modelCalls, decided: counts, left: judging.left };
}

async function unsettledByOwner(
  store: RecordStore,
  tenant: string,
  { isOn }: Pick<SettlingDeps, 'isOn'>,
): Promise<ReadonlyArray<readonly [Scope, readonly StoredRecord[]]>> {
  const records = await store.find({ tenant, agent: null }, LAYER, UNSETTLED, { order: 'newest', limit: PAGE });
  const owners = [...Map.groupBy(records, ({ scope: { agent, user } }) => JSON.stringify([agent, user])).values()];
  const wanted = await Promise.all(owners.map(async ([first]) => isOn(first!.scope.agent)));
  return owners.filter((_, at) => wanted[at]).map((ofOwner) => [ofOwner[0]!.scope, ofOwner] as const);
}

/** Pairs of these facts that have no decision yet. Ids that need no comparison any more are removed from `unsettled`. */
async function openPairs({ store }: LayerDeps, scope: Scope, records: readonly StoredRecord[]): Promise<readonly FactPair[]> {
  const pairs = new Map<string, FactPair>();
  for (const record of records) {
    const known = knownFact(record);
    const left: string[] = [];
    for (const id of known.fact.unsettled ?? []) {
      const other = await currentOf(store, scope, id);
      if (other === null || other.fact.id === known.fact.id) continue;
      const pair = pairOf(known.fact, other.fact);
      const made = decisionAbout(pair);
      if (made === undefined) {
        left.push(other.fact.id);
        pairs.set(`${pair.older.id} ${pair.newer.id}`, pair);
      } else if (made.verdict !== 'differs') await finish(store, scope, pair);
    }
    const now = [...new Set(left)];
    if (now.join() !== known.fact.unsettled?.join())
      await update(store, known, { ...known.fact, unsettled: now.length === 0 ? undefined : now });
  }
  return [...pairs.values()];
}

/** The fact if it is current, else the current fact that replaced it; null if neither exists. */
async function currentOf(store: RecordStore, scope: Scope, id: string): Promise<StoredKnownFact | null> {
  let next: string | undefined = id;
  for (let steps = 0; next !== undefined && steps < CHAIN_MAX; steps += 1) {
    const known = await loadFact(store, scope, next);
    if (known === null || isCurrent(known.fact)) return known;
    next = known.fact.supersededBy;
  }
  return null;
}

async function loadFact(store: RecordStore, scope: Scope, id: string): Promise<StoredKnownFact | null> {
  const [known] = await loadFacts(store, { tenant: scope.tenant, agent: null }, [id]);
  return known !== undefined && isSameOwner(known.fact.scope, scope) ? known : null;
}

/** Writes nothing if another writer was faster. The next pass reads the fact again. */
async function update(store: RecordStore, { record, taken }: StoredKnownFact, fact: Fact): Promise<void> {
  await store.write(fact.scope.tenant, [{ do: 'update', record: factRecord(fact, taken), revision: record.revision }]);
}

/** Ends the validity of the older fact, if a crash came between the two writes of the decision. */
async function finish(store: RecordStore, scope: Scope, { older, newer }: FactsOfPair): Promise<void> {
  const known = await loadFact(store, scope, older.id);
  if (known !== null && isCurrent(known.fact)) await update(store, known, ended(known.fact, newer));
}

/**
 * Asks the model about the pairs of one owner, as far as the budget goes. Adds to `judging` the calls and the pairs that are left, and
 * sets `by` to the name of the model that answered last.
 */
async function* verdictsOn(
  pairs: readonly FactPair[],
  settling: SettlingDeps,
  judging: { modelCalls: number; left: number; by: string },
): AsyncGenerator<readonly [FactPair, PairVerdict]> {
  for (let rest = pairs; rest.length > 0;) {
    const batch = await affordable(rest.slice(0, CALL_PAIRS_MAX), judgeTokens, settling);
    if (batch.length === 0) {
      judging.left += rest.length;
      return;
    }
    rest = rest.slice(batch.length);
    judging.modelCalls += 1;
    const answer = await askWithin(settling, judgeRequest(batch));
    if (answer !== null) judging.by = answer.scripted ? `${answer.model} (scripted)` : answer.model;
    const verdicts = answer && readVerdicts(answer.text, batch.length);
    // If no answer is readable, each pair is asked about alone, so that one odd text can't block decisions about other pairs.
    if (verdicts === null && batch.length > 1) for (const pair of batch) yield* verdictsOn([pair], settling, judging);
    else for (const [at, pair] of batch.entries()) yield [pair, verdicts?.[at] ?? NO_ANSWER];
  }
}

/** Stores a decision in the newer fact, then in the older one. Stores nothing if a fact changed since the model was asked. */
async function decide(deps: LayerDeps, scope: Scope, asked: FactPair, decision: FactDecision): Promise<boolean> {
  return untilTaken(`fact ${asked.newer.id}`, async () => {
    const [older, newer] = await Promise.all([loadFact(deps.store, scope, asked.older.id), loadFact(deps.store, scope, asked.newer.id)]);
    if (older === null || newer === null || !isCurrent(older.fact) || !isCurrent(newer.fact)) return false;
    if (older.fact.text !== asked.older.text || newer.fact.text !== asked.newer.text) return false;
    const after = decided({ older: older.fact, newer: newer.fact }, decision);
    return (await isWritten(deps, scope.tenant, await changesOf(deps, { older, newer }, after))) || null;
  });
}

async function changesOf(
  { embedder }: LayerDeps,
  { older, newer }: Readonly<Record<keyof FactsOfPair, StoredKnownFact>>,
  after: FactsOfPair,
): Promise<readonly Change[]> {
  const ofNewer = await rewriteOf(embedder, newer.record, factRecord(after.newer, newer.taken));
  if (after.older === older.fact) return [ofNewer];
  return [ofNewer, { do: 'update', record: factRecord(after.older, older.taken), revision: older.record.revision }];
}

async function isWritten({ store }: Pick<LayerDeps, 'store'>, tenant: string, changes: readonly Change[]): Promise<boolean> {
  return !(await store.write(tenant, changes)).includes(false);
}

/** Undoes the last decision about two facts; null if there is none. Writes the older fact first, so that a repeat undoes the same decision. */
export async function undoDecision(
  deps: LayerDeps,
  scope: ReadScope,
  ids: readonly [string, string],
  by: string,
): Promise<FactsOfPair | null> {
  const done = await untilTaken<FactsOfPair | 'none'>(`fact ${ids[0]}`, async () => {
    const [first, second] = await loadFacts(deps.store, scope, ids);
    if (first === undefined || second === undefined) return 'none';
    for (const [older, newer] of [[first, second] as const, [second, first] as const]) {
      const after = undone({ older: older.fact, newer: newer.fact }, { by, at: deps.clock.now() });
      if (after === null) continue;
      const changes = await changesOf(deps, { older, newer }, after);
      return (await isWritten(deps, scope.tenant, changes.toReversed())) ? after : null;
    }
    return 'none';
  });
  return done === 'none' ? null : done;
}

/**
 * Removes the text of a deleted fact from other facts of its owner, and decisions about the fact, because their reasons may quote the text.
 * Facts that the deleted fact replaced now count as replaced by its successor, so that their history stays complete.
 */
export async function unlinkFact(
  { store, embedder }: Pick<LayerDeps, 'store' | 'embedder'>,
  tenant: string,
  deleted: NamedRecord,
): Promise<void> {
  const { name, agent, user } = deleted;
  if (!name.startsWith(FACTS)) return;
  const id = name.slice(FACTS.length);
  const next = (await namedFact(store, tenant, name))?.supersededBy;
  for await (const page of store.each({ tenant, agent, user }, LAYER, { kinds: ['fact'] }))
    for (const { key } of page.filter((one) => one.key !== id && one.body.includes(JSON.stringify(id))))
      await untilTaken(`fact ${key}`, async () => {
        const [known] = await loadFacts(store, { tenant, agent: null }, [key]);
        if (known === undefined) return true;
        const changed = changedRecord(known, withoutFact(known.fact, id, next));
        return (await isWritten({ store }, tenant, [await rewriteOf(embedder, known.record, changed)])) || null;
      });
}

function withoutFact(fact: Fact, id: string, next: string | undefined): Fact {
  return {
    ...fact,
    supersededBy: fact.supersededBy === id ? next : fact.supersededBy,
    wordings: fact.wordings?.filter((one) => one.id !== id),
    outdated: fact.outdated?.filter((one) => one.id !== id),
    decisions: fact.decisions?.filter(({ other }) => other !== id),
  };
}
