import { mendDocuments } from '../layers/documents.js';
import type { StoreReport } from '../memory.js';
import { LAYERS } from '../record-store.js';
import { renewMarks } from './archive-records.js';
import { reconcileSkills } from './reconcile-skills.js';
import type { UpkeepDeps } from './record-upkeep.js';

const SENTENCES_MAX = 100;
const DAY_MS = 86_400_000;
/** Notes of applied writes are kept for this time. Writes and requests aren't repeated later. */
const APPLIED_KEPT_MS = 30 * DAY_MS;

/**
 * Reports damage and records without vectors. Then repairs what interrupted writes and earlier versions left in the layers, and drops
 * old notes of writes.
 */
export async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store, clock, embedder } = deps;
  const checked = { records: 0, skills: 0 };
  const repaired: string[] = [];
  const problems = [...(await store.damage())];
  for (const tenant of await store.tenants()) {
    const { model } = embedder.profile;
    for (const layer of LAYERS) {
      checked.records += await store.count({ tenant }, layer, {});
      const without = await store.count({ tenant }, layer, { withoutVectorsOf: model });
      if (without > 0)
        problems.push(`${without} ${layer} records of ${tenant} have no vectors of ${model}; run "etude memory reembed" to make them`);
    }
    repaired.push(...(await mendDocuments(store, tenant)));
    const renewed = await renewMarks(store, tenant);
    if (renewed > 0) repaired.push(`${renewed} records of ${tenant} that an earlier version archived can be restored by this one`);
    checked.skills += await reconcileSkills(deps, tenant, { repaired, problems });
    const old = { kinds: ['applied'], createdBefore: clock.now() - APPLIED_KEPT_MS } as const;
    for (const layer of LAYERS) await store.remove({ tenant }, layer, old);
  }
  return { checked, repaired: repaired.slice(0, SENTENCES_MAX), problems: problems.slice(0, SENTENCES_MAX) };
}
