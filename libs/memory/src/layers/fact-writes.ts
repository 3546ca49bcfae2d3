import type { FactOutcome } from '../memory.js';
import type { Change, IndexedText, RecordStore } from '../record-store.js';
import { factRecord, LAYER, similarFacts, type StoredKnownFact, surroundingFacts } from './fact-records.js';
import { type LayerDeps, untilTaken, withTaken } from './records.js';
import { markApplied } from './repeats.js';
import type { Fact } from '@etude/contracts/memory';
import { type FactPlan, planFact, type Told } from '@etude/domain/facts/fact-plan';

export interface TakenFact extends Pick<FactPlan, 'replaced'> {
  readonly fact: Fact;
  readonly outcome: FactOutcome;
  /** Whether this write inserted a record. */
  readonly isAdded: boolean;
}

export interface FactWrite {
  readonly writeId: string;
  readonly fact: Fact;
  /** The searchable texts of the fact with their vectors, its own first. */
  readonly indexed: readonly IndexedText[];
  /** Whether to record the write as applied. If false, the caller does so for several writes together. */
  readonly note: boolean;
}

/**
 * Stores a fact: inserts it if it is new, updates the facts that it reinforces or supersedes, then notes the write as applied. The plan is
 * made from the stored records, so a repeat after a crash continues where the first try stopped.
 */
export async function takeFact(deps: LayerDeps, { writeId, fact, indexed, note }: FactWrite): Promise<TakenFact> {
  const { tenant } = fact.scope;
  const told: Told = { fact, writeId };
  const similar = await similarFacts(deps, fact.scope, indexed[0]!);
  let isAdded = false;
  return untilTaken(`fact ${JSON.stringify(fact.text.slice(0, 60))}`, async () => {
    let plan = planFact(told, await surroundingFacts(deps, fact, similar));
    if (plan.insert !== null) {
      const insert = { do: 'insert', record: factRecord(plan.insert, [writeId]), indexed } as const;
      // The note, which follows, waits for the disk.
      const [inserted] = await deps.store.write(tenant, [insert], { unsynced: note });
      if (!inserted) return null;
      isAdded = true;
      // Plan again with the fact stored, to see facts that others stored at the same time.
      plan = planFact(told, await surroundingFacts(deps, fact, similar));
    }
    const { kept, replaced } = plan;
    if (kept === null) return null;
    const changes = [...changesOf(plan), ...(note ? [notedFact(told, kept)] : [])];
    const done = changes.length === 0 ? [] : await deps.store.write(tenant, changes);
    // Another writer changed one of the facts.
    if (plan.changes.some((_, at) => done[at] !== true)) return null;
    return { fact: kept, outcome: outcomeOf(plan, isAdded), isAdded, replaced };
  });
}

function outcomeOf({ replaced, isTaken }: FactPlan, isAdded: boolean): FactOutcome {
  if (replaced.length > 0) return 'superseded';
  if (isAdded) return 'added';
  return isTaken ? 'unchanged' : 'reinforced';
}

/** The plan as changes of records. No text changes, so nothing is embedded. */
function changesOf({ changes }: FactPlan): readonly Change[] {
  return changes.map(({ known, fact, taken }) => {
    const { record } = known as StoredKnownFact;
    const next = factRecord(fact, taken.reduce<readonly string[]>(withTaken, known.taken));
    return { do: 'update', record: next, revision: record.revision };
  });
}

/** The fact that a noted write stored or changed; null for a write of several facts. */
export async function notedFactId(store: RecordStore, tenant: string, writeId: string): Promise<string | null> {
  const [record] = await store.load({ tenant, agent: null }, LAYER, 'applied', [writeId]);
  return record?.sources[0] ?? null;
}

function notedFact({ fact: { scope, createdAt }, writeId }: Told, kept: Fact): Change {
  const change = markApplied(LAYER, scope, writeId, createdAt);
  return { ...change, record: { ...change.record, sources: [kept.id] } };
}
