import type { IndexedText, MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { asArchived, bodyOf, isArchived, type LayerDeps, parseBody, sourceField } from './records.js';
import type { Fact, Scope } from '@etude/contracts/memory';
import { factKeys, factTime, isCurrent, type KnownFact } from '@etude/domain/facts/fact-plan';
import type { ReadScope } from '@etude/domain/ports/memory';
import { factEntry } from '@etude/domain/retrieval/entries';
import { isSameOwner } from '@etude/domain/skills/life/skill-life';

export const LAYER = 'semantic';

export interface StoredKnownFact extends KnownFact {
  readonly record: StoredRecord;
}

/**
 * The record of a fact. Its field `status` is `superseded`, or `unsettled` for a current fact that has to be compared with others;
 * otherwise it is absent. `name` is the id of the fact that superseded this one. `subject` has values that facts share if they say the same
 * or have the same subject (`factKeys`).
 */
export function factRecord(fact: Fact, taken: readonly string[]): MemoryRecord {
  const { id, scope, category, supersededBy, unsettled } = fact;
  const { indexed: _indexed, ...entry } = factEntry(fact);
  const shown = isCurrent(fact);
  const fields = {
    category,
    ...sourceField('fact', fact),
    subject: [...new Set([firstLifeKey(id), ...factKeys(fact)])],
    ...(shown ? {} : { status: 'superseded' }),
    ...(shown && unsettled !== undefined ? { status: 'unsettled' } : {}),
    ...(supersededBy === undefined ? {} : { name: supersededBy }),
  };
  return { ...entry, layer: LAYER, key: id, scope, shown, fields, body: bodyOf(fact, taken) };
}

export function factOfRecord(record: StoredRecord): Fact {
  return parseBody<Fact>(record).value;
}

export function knownFact(record: StoredRecord, similarity = 0): StoredKnownFact {
  const { value: fact, taken } = parseBody<Fact>(record);
  return { record, fact, taken, similarity };
}

export async function loadFacts(store: RecordStore, scope: ReadScope, ids: readonly string[]): Promise<readonly StoredKnownFact[]> {
  return (await store.load(scope, LAYER, 'fact', ids)).map((record) => knownFact(record));
}

export function changedRecord({ record, taken }: StoredKnownFact, fact: Fact): MemoryRecord {
  const changed = factRecord(fact, taken);
  return isArchived(record) ? asArchived(changed) : changed;
}

/** A look-up key from the fact's first text. It stays if the text changes, so that no other fact gets the same id. */
function firstLifeKey(id: string): string {
  return `text:${id.split('.', 1)[0]}`;
}

/** Lowest calibrated similarity of facts that may say the same or the opposite. Rewordings and translations can have such a low similarity. */
const RELATED_MIN = 0.3;
const NEAR_MAX = 16;
const KEYED_MAX = 100;

/** Similarities of related current facts in the tenant, by id. Facts of other owners are included; `surroundingFacts` drops them. */
export async function similarFacts(deps: LayerDeps, scope: Scope, { text, vector }: IndexedText): Promise<ReadonlyMap<string, number>> {
  const query = { kinds: ['fact'], shown: true, vector, text: vector === null ? text : '', limit: NEAR_MAX } as const;
  const found = await deps.store.search(scope, LAYER, query);
  const similar = found.map(({ key, cosine }) => [key, deps.embedder.profile.calibrate(cosine)] as const);
  return new Map(similar.filter(([, similarity]) => similarity >= RELATED_MIN));
}

/** Facts of the same owner that may say the same as this fact or contradict it, freshly loaded. Superseded facts are included. */
export async function surroundingFacts(
  { store }: LayerDeps,
  fact: Fact,
  similar: ReadonlyMap<string, number>,
): Promise<readonly StoredKnownFact[]> {
  const { scope } = fact;
  const subject = factKeys(fact);
  const filter = { kinds: ['fact'], where: { subject } } as const;
  const [keyed, near] = await Promise.all([
    store.find(scope, LAYER, filter, { order: 'newest', limit: KEYED_MAX }),
    similar.size === 0 ? [] : store.load(scope, LAYER, 'fact', [...similar.keys()]),
  ]);
  const records = new Map([...keyed, ...near].map((record) => [record.key, record]));
  return [...records.values()]
    .filter((record) => isSameOwner(record.scope, scope))
    .map((record) => knownFact(record, similar.get(record.key) ?? 0));
}

const CHAIN_MAX = 1_000;
const PAGE = 100;

/**
 * The decisions that are stored with these facts, oldest first, with the texts of both compared facts. `olderText` is empty if the older
 * fact is gone; `decideTime` is in ms since 1970.
 */
export async function decisionsAbout(store: RecordStore, scope: ReadScope, facts: readonly Fact[]) {
  const made = facts.flatMap((fact) => (fact.decisions ?? []).map((decision) => ({ fact, decision })));
  const others = await loadFacts(store, scope, [...new Set(made.map(({ decision }) => decision.other))]);
  const texts = new Map(others.map(({ fact }) => [fact.id, fact.text]));
  const told = made.map(({ fact, decision: { other: older, at: decideTime, ...decision } }) => {
    return { ...decision, newer: fact.id, newerText: fact.text, older, olderText: texts.get(older) ?? '', decideTime };
  });
  return told.toSorted((a, b) => a.decideTime - b.decideTime);
}

/** The fact with all its predecessors and successors, newest first. Empty if there is no such fact. */
export async function historyOf(store: RecordStore, scope: ReadScope, id: string): Promise<readonly Fact[]> {
  const found = new Map<string, StoredRecord>();
  const seen = new Set([id]);
  for (let asked = [id]; asked.length > 0 && found.size < CHAIN_MAX;) {
    const [named, before] = await Promise.all([
      store.load(scope, LAYER, 'fact', asked),
      store.find(scope, LAYER, { kinds: ['fact'], where: { name: asked } }, { order: 'newest', limit: PAGE }),
    ]);
    const records = [...named, ...before];
    for (const record of records) found.set(record.key, record);
    const linked = records.flatMap((record) => [record.key, factOfRecord(record).supersededBy ?? record.key]);
    asked = [...new Set(linked)].filter((key) => !seen.has(key));
    for (const key of asked) seen.add(key);
  }
  return found.has(id) ? [...found.values()].map(factOfRecord).toSorted(newestFirst) : [];
}

function newestFirst(a: Fact, b: Fact): number {
  return factTime(b) - factTime(a) || Number(isCurrent(b)) - Number(isCurrent(a));
}

export const FACTS = 'facts/';

/** The fact with a name such as "facts/f1"; null if there is none, or for another kind of name. */
export async function namedFact(store: RecordStore, tenant: string, name: string): Promise<Fact | null> {
  if (!name.startsWith(FACTS)) return null;
  const [known] = await loadFacts(store, { tenant, agent: null }, [name.slice(FACTS.length)]);
  return known?.fact ?? null;
}
