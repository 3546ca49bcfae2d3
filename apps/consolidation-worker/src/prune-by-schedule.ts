import type { MemoryUpkeepJob } from '@etude/contracts/queues';
import type { Clock } from '@etude/domain/ports/clock';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { type PruneDeps, pruneSkills } from '@etude/domain/skills/life/prune';
import type { z } from 'zod';

type PruneWork = Extract<z.infer<typeof MemoryUpkeepJob.payload>, { work: 'prune' }>;

/**
 * Prunes a tenant's skills as its schedule says, under an id made from the firing: a repeat finishes what was begun. Answers how many
 * are archived by it.
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
