import type { StoreReport } from '../../record-store.js';
import { reconcileNotes } from './reconcile-notes.js';
import type { UpkeepDeps } from './record-upkeep.js';

const SENTENCES_MAX = 100;

/** What the store finds half written in itself, then what the layers can have left between two records of theirs. */
export async function reconcileRecords({ store, embedder }: UpkeepDeps): Promise<StoreReport> {
  let report = await store.reconcile();
  for (const tenant of await store.tenants()) report = together(report, await reconcileNotes(store, embedder, tenant));
  return report;
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
