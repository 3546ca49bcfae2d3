import type { StoreReport } from '../../record-store.js';
import { mendDocuments } from '../semantic-documents.js';
import { mergeDuplicates } from '../semantic-merging.js';
import { reconcileNotes } from './reconcile-notes.js';
import type { UpkeepDeps } from './record-upkeep.js';

const SENTENCES_MAX = 100;
/** Each fact costs a search; those that are older were looked at before. */
const FACTS_SINCE_MS = 7 * 86_400_000;

/** What the store finds half written in itself, then what the layers can have left between two records of theirs. */
export async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store, embedder } = deps;
  let report = await store.reconcile();
  for (const tenant of await store.tenants()) {
    report = together(report, await reconcileNotes(store, embedder, tenant));
    report = together(report, await reconcileDocuments(store, tenant));
    report = together(report, await reconcileFacts(deps, tenant));
  }
  return report;
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
