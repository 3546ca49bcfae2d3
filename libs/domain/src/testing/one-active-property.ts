import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import type { ProceduralMemory } from '../ports/memory.js';
import { approveSkill, settleVerified } from '../skills/life/approve.js';
import { rollbackSkill } from '../skills/life/rollback.js';
import { archiveSkill, restoreSkill } from '../skills/life/retire.js';
import { NEW_YEAR, SCOPE, skillOf } from './memory-records.js';
import { storeAt } from './skill-lives.js';

const NAME = 'sum_even';
const SETTINGS = { approvalMode: 'automatic', skillRegistrationConfidenceThreshold: 0.9 } as const;
const VERSIONS = 6;
const DECISION = fc.record({
  what: fc.constantFrom('approve', 'rollback', 'restore', 'settle', 'archive'),
  version: fc.integer({ min: 1, max: VERSIONS }),
  /** Which of the registries. */
  by: fc.nat(1),
});
type Decided = typeof DECISION extends fc.Arbitrary<infer T> ? T : never;

/** Decisions of one turn are made at the same time. */
export const DECISIONS = fc.array(fc.array(DECISION, { minLength: 2, maxLength: 5 }), { minLength: 1, maxLength: 6 });

/**
 * Whoever decides about the versions of a skill, at once, over however many registries: at most one of them is active behind it.
 *
 * @param registries over one store
 * @returns how often one was active behind a turn, and how many decisions another one stood in the way of
 */
export async function decideAtOnce(
  registries: readonly [ProceduralMemory, ...ProceduralMemory[]],
  turns: ReadonlyArray<readonly Decided[]>,
): Promise<{ readonly active: number; readonly refused: number }> {
  const [registry] = registries;
  const found = { active: 0, refused: 0 };
  await storeVersions(registry);
  for (const [i, turn] of turns.entries()) {
    const versions = await registry.versions(SCOPE, NAME);
    const outcomes = await Promise.allSettled(
      turn.map((decided, j) =>
        decide(registries[decided.by % registries.length] ?? registry, decided, versions, NEW_YEAR + 100 + i * 10 + j),
      ),
    );
    for (const outcome of outcomes) found.refused += outcome.status === 'rejected' ? refusal(outcome.reason) : 0;
    const active = await registry.versions(SCOPE, NAME, 'active');
    if (active.length > 1)
      throw new Error(`active at once: ${active.map(({ version }) => version).join(', ')}, by ${JSON.stringify(turn)}`);
    found.active += active.length;
  }
  return found;
}

/** Three that were in use, the last of them still; two that wait for review; one that verification has just found good. */
async function storeVersions(registry: ProceduralMemory): Promise<void> {
  const statuses = ['active', 'active', 'active', 'pending_review', 'pending_review', 'verified'] as const;
  for (const [i, status] of statuses.entries()) await storeAt(registry, skillOf({ code: `print('${i}')`, status }), { at: NEW_YEAR + i });
}

async function decide(registry: ProceduralMemory, { what, version }: Decided, versions: readonly Skill[], at: number): Promise<unknown> {
  const skill = versions.find((one) => one.version === version);
  if (skill === undefined) return null;
  const decision = { by: 'ann', reason: '', at };
  switch (what) {
    case 'approve':
      return approveSkill(registry, skill, { ...decision, digest: skill.digest });
    case 'rollback':
      return rollbackSkill(registry, skill, { ...decision, toVersion: version });
    case 'restore':
      return restoreSkill(registry, [skill], decision);
    case 'archive':
      return archiveSkill(registry, [skill], decision);
    default:
      return settleVerified(registry, skill, SETTINGS, at);
  }
}

/** Nobody is refused but for what somebody else decided. */
function refusal(error: unknown): number {
  const code = errorCode(error);
  if (code !== 'ABORTED' && code !== 'FAILED_PRECONDITION') throw error;
  return 1;
}
