import type { MemoryUpkeepJob } from '@etude/contracts/queues';
import type { StoreReport } from '@etude/memory/record-store';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import { type EraseDeps, eraseSubject } from './erase-subject.js';
import { pruneBySchedule } from './prune-by-schedule.js';
import { moveVectors, type ReembedDeps } from './move-vectors.js';

export type MemoryUpkeepDeps = EraseDeps & ReembedDeps;

/** What is done to memory as a whole. Each work keeps its own record, so that a job that is taken over goes on. */
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
