import { mendDocuments } from '../layers/documents.js';
import { mergeDuplicates } from '../layers/fact-writes.js';
import type { StoreReport } from '../memory.js';
import { LAYERS } from './owned-records.js';
import { reconcileSkills } from './reconcile-skills.js';
import type { UpkeepDeps } from './record-upkeep.js';

const SENTENCES_MAX = 100;
const DAY_MS = 86_400_000;
/** Only newer facts are checked: each costs a search, and older ones were checked before. */
const FACTS_SINCE_MS = 7 * DAY_MS;
/** Notes of applied writes are kept for this time. Writes and requests aren't repeated later. */
const APPLIED_KEPT_MS = 30 * DAY_MS;

/** Reports damage and records without vectors. Then repairs what interrupted writes left in the layers, and drops old notes of writes. */
export async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store, clock } = deps;
  let report: StoreReport = { checked: {}, repaired: [], problems: await store.damage() };
  for (const tenant of await store.tenants()) {
    report = together(report, await lookForVectors(deps, tenant));
    report = together(report, { checked: {}, repaired: await mendDocuments(store, tenant), problems: [] });
    report = together(report, await reconcileFacts(deps, tenant));
    report = together(report, await reconcileSkills(deps, tenant));
    const old = { kinds: ['applied'], createdBefore: clock.now() - APPLIED_KEPT_MS } as const;
    for (const layer of LAYERS) await store.remove({ tenant }, layer, old);
  }
  return report;
}

async function lookForVectors({ store, embedder }: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const { model } = embedder.profile;
  const problems: string[] = [];
  let records = 0;
  for (const layer of LAYERS) {
    records += await store.count({ tenant }, layer, {});
    const without = await store.count({ tenant }, layer, { withoutVectorsOf: model });
    if (without > 0)
      problems.push(`${without} ${layer} records of ${tenant} have no vectors of ${model}; run "etude memory reembed" to make them`);
  }
  return { checked: { records }, repaired: [], problems };
}

/** Merges facts told at the same instant, and completes interrupted supersessions. */
async function reconcileFacts(deps: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const since = deps.clock.now() - FACTS_SINCE_MS;
  const { looked, merged, superseded, problems } = await mergeDuplicates(deps, { tenant, agent: null }, { since });
  const repaired = [
    ...(merged > 0 ? [`${merged} facts of ${tenant} that said the same are one each now`] : []),
    ...(superseded > 0 ? [`${superseded} facts of ${tenant} gave way to newer ones of their subject`] : []),
  ];
  return { checked: { facts: looked }, repaired, problems };
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
