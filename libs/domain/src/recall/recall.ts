import type { RecalledItem } from '@etude/contracts/memory';
import type { MemoryPolicy } from '@etude/contracts/task';
import type { ReadScope } from '../ports/memory.js';
import { recollect, type RecollectDeps } from './recollect.js';

export interface RecallInput {
  readonly scope: ReadScope;
  readonly cue: string;
  readonly policy: Pick<MemoryPolicy, 'recallCount' | 'layers' | 'off'>;
  /** What this rollout itself left behind is no memory of another task. */
  readonly rolloutId: string;
}

/** Enough for a few solutions, small beside any context window. */
const TOKENS_MAX = 2_000;

export function recallsNothing({ off, recallCount, layers }: RecallInput['policy']): boolean {
  return off || recallCount === 0 || layers.length === 0;
}

/**
 * What a rollout is reminded of, as its policy says.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE: without memory the rollout would solve another task than was asked for
 */
export async function recall({ scope, cue, policy, rolloutId }: RecallInput, deps: RecollectDeps): Promise<RecalledItem[]> {
  if (recallsNothing(policy)) return [];
  const counts = Object.fromEntries(policy.layers.map((layer) => [layer, policy.recallCount]));
  const leaveOut = ({ id }: { id: string }) => id.startsWith(rolloutId);
  const { hits } = await recollect({ scope, cue, counts, tokensMax: TOKENS_MAX, leaveOut }, deps);
  return hits.map(plainItem);
}

/** A hit without what only searches show. */
function plainItem({ id, layer, kind, title, text, score, similarity }: RecalledItem): RecalledItem {
  return { id, layer, kind, title, text, score, similarity };
}
