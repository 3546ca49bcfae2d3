import type { Skill } from '@etude/contracts/memory';
import { canonicalJson } from '../content-digest.js';

/** Whether its tests were made from a task's cases, some of which are hidden, and not by whoever wrote it. */
export function hasHiddenTests({ origin = 'rollout', hiddenTests = false }: Pick<Skill, 'origin' | 'hiddenTests'>): boolean {
  return hiddenTests || origin === 'rollout' || origin === 'consolidation';
}

/** Whether it goes on with such tests, whoever wrote it: an edit carries over those of the version before. */
export function carriesHiddenTests({ tests }: Pick<Skill, 'tests'>, versions: readonly Skill[]): boolean {
  const hidden = new Set(versions.filter(hasHiddenTests).flatMap((version) => version.tests.map(canonicalJson)));
  return tests.some((test) => hidden.has(canonicalJson(test)));
}
