import type { Change, IndexedText, MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { factRecord, LAYER, similarFacts, type StoredKnownFact, surroundingFacts } from './fact-records.js';
import { bodyOf, type LayerDeps, parseBody, untilTaken, updateEach, withTaken } from './records.js';
import { markApplied } from './repeats.js';
import type { Fact } from '@etude/contracts/memory';
import { type FactPlan, planFact, type Told } from '@etude/domain/facts/fact-plan';

export type FactOutcome = 'added' | 'reinforced' | 'superseded' | 'unchanged';

export interface TakenFact extends Pick<FactPlan, 'replaced'> {
  readonly fact: Fact;
  /** `superseded`: the fact superseded the facts in `replaced`. `unchanged`: this write was stored before. */
  readonly outcome: FactOutcome;
  readonly isAdded: boolean;
}

export interface FactWrite {
  readonly writeId: string;
  readonly fact: Fact;
  /** The searchable texts of the fact with their vectors. The fact's own text comes first. */
  readonly indexed: readonly IndexedText[];
  /** Whether to record the write as applied. If false, the caller records several writes together. */
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
      // With `note`, the note is written next and waits for the disk, which also puts this insert on disk.
      const [inserted] = await deps.store.write(tenant, [insert], { unsynced: note });
      if (!inserted) return null;
      isAdded = true;
      // Plans again after the insert, to see facts that others stored at the same time.
      plan = planFact(told, await surroundingFacts(deps, fact, similar));
    }
    const { kept, replaced } = plan;
    if (kept === null) return null;
    const changes = [...changesOf(plan), ...(note ? [markApplied(LAYER, fact.scope, writeId, fact.createdAt, [kept.id])] : [])];
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

/** The plan as updates of records. No searchable text changes, so nothing is embedded. */
function changesOf({ changes }: FactPlan): readonly Change[] {
  return changes.map(({ known, fact, taken }) => {
    const { record } = known as StoredKnownFact;
    const next = factRecord(fact, taken.reduce<readonly string[]>(withTaken, known.taken));
    return { do: 'update', record: next, revision: record.revision };
  });
}

/** Logs a failure that no caller waits for. */
export type LogFailure = (message: string, details: Readonly<Record<string, unknown>>) => void;
const FLUSH_DELAY_MS = 200;

/** Counts how often facts were shown, and writes the counts in the background. A count that can't be written is logged and lost. */
export function accessCounts(store: RecordStore, log: LogFailure) {
  const waiting: Array<readonly [tenant: string, id: string]> = [];
  let timer: NodeJS.Timeout | undefined;
  let flushing = Promise.resolve();
  const writeAll = async () => {
    for (const [tenant, accesses] of Map.groupBy(waiting.splice(0), ([of]) => of)) {
      const counts = Map.groupBy(accesses, ([, id]) => id);
      await writeCounts(store, tenant, counts).catch((reason: unknown) =>
        log('accesses of facts were not counted', { facts: counts.size, reason }),
      );
    }
  };
  /** Writes all waiting counts. Never rejects. */
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    flushing = flushing.then(writeAll);
    return flushing;
  };
  const add = (tenant: string, ids: readonly string[]): void => {
    waiting.push(...ids.map((id) => [tenant, id] as const));
    timer ??= setTimeout(() => void flush(), FLUSH_DELAY_MS).unref();
  };
  return { add, flush };
}

/** @param counts the accesses of each fact */
async function writeCounts(store: RecordStore, tenant: string, counts: ReadonlyMap<string, readonly unknown[]>): Promise<void> {
  const facts = await store.load({ tenant, agent: null }, LAYER, 'fact', [...counts.keys()]);
  const counted = (record: StoredRecord): MemoryRecord => {
    const { value: fact, taken } = parseBody<Fact>(record);
    return { ...record, body: bodyOf({ ...fact, accessCount: fact.accessCount + (counts.get(record.key)?.length ?? 0) }, taken) };
  };
  await updateEach(store, facts, counted, { unsynced: true });
}
