import { describe, expect, it } from 'vitest';
import { CALLERS_CAN_RUN } from '../../../test/callers-property.js';
import { decideAtOnce } from '../../../test/decisions-property.js';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { storeAt } from '../../../test/skill-lives.js';
import { dependencyOn } from '../proof/bundle-code.js';
import { archiveSkill, settleVerified } from './decisions.js';

const DECISION = { by: 'ann', reason: 'harmful', at: NEW_YEAR + 5 };

const open = () => ({ registries: [new FakeProceduralMemory()] as const });

describe('what is in use can call what it was verified with', () => {
  it('whoever decides what at once', async () => {
    const { inUse, refused } = await decideAtOnce(CALLERS_CAN_RUN, open, { numRuns: 200 });
    console.info(`${inUse} callers in use were looked at, ${refused} decisions were refused`);
    expect(inUse).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(50);
  });

  it('so what was archived while its caller was verified leaves that rejected', async () => {
    for (const approvalMode of ['automatic', 'review'] as const) {
      const registry = new FakeProceduralMemory();
      const called = await storeAt(registry, skillOf({ name: 'base', status: 'active' }));
      const caller = await storeAt(registry, skillOf({ name: 'caller', status: 'verified', dependencies: [dependencyOn(called)] }));
      await archiveSkill(registry, [called], DECISION);
      const settled = await settleVerified(registry, caller, { approvalMode, skillRegistrationConfidenceThreshold: 0.5 }, NEW_YEAR + 6);
      expect(settled).toMatchObject({
        status: 'rejected',
        statusReason: expect.stringContaining('caller needs base@1, which is archived (harmful)') as string,
      });
      expect(await registry.versions(SCOPE, 'caller')).toEqual([settled]);
    }
  });
});
