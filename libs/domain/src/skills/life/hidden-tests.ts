import type { Skill } from '@etude/contracts/memory';

/** Whether its tests were made from a task's cases, some of which are hidden, and not by whoever wrote it. */
export function hasHiddenTests({ origin = 'rollout', hiddenTests = false }: Pick<Skill, 'origin' | 'hiddenTests'>): boolean {
  return hiddenTests || origin === 'rollout' || origin === 'consolidation';
}
