import type { RecordStore, StoreReport } from '../../record-store.js';
import { mendDocuments } from '../semantic-documents.js';
import { mergeDuplicates } from '../semantic-merging.js';
import { reconcileNotes } from './reconcile-notes.js';
import { reconcileSkills } from './reconcile-skills.js';
import type { UpkeepDeps } from './record-upkeep.js';

const SENTENCES_MAX = 100;
const REASON_MAX_CHARS = 300;
/** Each fact costs a search; those that are older were looked at before. */
const FACTS_SINCE_MS = 7 * 86_400_000;

/**
 * What the store finds half written in itself, then what the layers can have left between two records of theirs. A record that nobody
 * can read is a problem in the report, and keeps neither the rest of its tenant nor any other from being looked at.
 */
export async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store, embedder } = deps;
  let report = await store.reconcile();
  for (const tenant of await store.tenants()) {
    const looks: ReadonlyArray<[string, () => Promise<StoreReport>]> = [
      ['episodes', () => reconcileNotes(store, embedder, tenant)],
      ['documents', () => reconcileDocuments(store, tenant)],
      ['facts', () => reconcileFacts(deps, tenant)],
      ['skills', () => reconcileSkills(deps, tenant)],
    ];
    for (const [what, look] of looks) report = together(report, await lookAt(store, `the ${what} of ${tenant}`, look));
  }
  return report;
}

/** @throws EtudeError of a store that does not answer at all */
async function lookAt(store: RecordStore, what: string, look: () => Promise<StoreReport>): Promise<StoreReport> {
  try {
    return await look();
  } catch (error) {
    await store.check();
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, REASON_MAX_CHARS);
    return { checked: {}, repaired: [], problems: [`${what} were not looked at to the end: ${reason}`] };
  }
}

async function reconcileDocuments(store: UpkeepDeps['store'], tenant: string): Promise<StoreReport> {
  return { checked: {}, repaired: await mendDocuments(store, tenant), problems: [] };
}

/** Facts that were told in the same instant, and one that was cut off before it took the place of another. */
async function reconcileFacts(deps: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const { looked, merged, superseded } = await mergeDuplicates(deps, { tenant, agent: null }, { since: deps.clock.now() - FACTS_SINCE_MS });
  const repaired = [
    ...(merged > 0 ? [`${merged} facts of ${tenant} that said the same are one each now`] : []),
    ...(superseded > 0 ? [`${superseded} facts of ${tenant} gave way to the newer ones that contradict them`] : []),
  ];
  return { checked: { facts: looked }, repaired, problems: [] };
}

function together(a: StoreReport, b: StoreReport): StoreReport {
  const checked: Record<string, number> = { ...a.checked };
  for (const [name, count] of Object.entries(b.checked)) checked[name] = (checked[name] ?? 0) + count;
  return {
    checked,
    repaired: [...a.repaired, ...b.repaired].slice(0, SENTENCES_MAX),
    problems: [...a.problems, ...b.problems].slice(0, SENTENCES_MAX),
  };
}
