import type { MemoryUpkeepJob } from '@etude/contracts/queues';
import type { Clock } from '@etude/domain/ports/clock';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { type PruneDeps, pruneSkills } from '@etude/domain/skills/life/prune';
import type { StoreReport } from '@etude/memory/memory';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { z } from 'zod';
import { type EraseDeps, eraseSubject } from './erase-subject.js';
import { moveVectors, type ReembedDeps } from './move-vectors.js';

export type MemoryUpkeepDeps = EraseDeps & ReembedDeps;

/** Does work on memory as a whole. Each kind of work keeps its own record, so that a worker that takes the job over can continue. */
export function memoryUpkeepProcessor(deps: MemoryUpkeepDeps): JobHandler<typeof MemoryUpkeepJob.payload, typeof MemoryUpkeepJob.result> {
  const { upkeep } = deps.memory;
  return async (payload, context) => {
    if (payload.work === 'erase') await eraseSubject(payload, deps, context);
    if (payload.work === 'reembed') await moveVectors(payload.id, deps, context);
    if (payload.work === 'reconcile') return { report: sentencesOf(await upkeep.reconcile()) };
    if (payload.work === 'prune') return { archived: await pruneBySchedule(payload, deps) };
    if (payload.work !== 'archive') return {};
    const { tenant, scoreMax, olderThanDays } = payload;
    const { archived } = await upkeep.archive({ tenant }, { scoreMax, olderThanDays }, { dryRun: false }, context.signal);
    return { archived };
  };
}

function sentencesOf({ checked, repaired, problems }: StoreReport) {
  return { checked: { ...checked }, repaired: [...repaired], problems: [...problems] };
}

type PruneWork = Extract<z.infer<typeof MemoryUpkeepJob.payload>, { work: 'prune' }>;

/**
 * Prunes a tenant's skills by the limits of its schedule. The prune id is made from the schedule's firing, so that a repeat completes the
 * same prune. Returns the number of archived skills.
 */
export async function pruneBySchedule(
  work: PruneWork,
  { memory, clock }: { readonly memory: PruneDeps; readonly clock: Clock },
): Promise<number> {
  const { tenant, id, unusedDays, failingRateMax, failingUsesMin, supersededDays } = work;
  const policy = {
    ...(unusedDays > 0 ? { unusedDays } : {}),
    ...(failingRateMax > 0 ? { failing: { rateMax: failingRateMax, usesMin: failingUsesMin } } : {}),
    ...(supersededDays > 0 ? { supersededDays } : {}),
  };
  const pruneId = `p${contentDigest([tenant, id]).slice(0, 16)}`;
  const { pruned } = await pruneSkills({ tenant, agent: null, policy, pruneId, by: 'pruning', dryRun: false, at: clock.now() }, memory);
  return pruned.length;
}
