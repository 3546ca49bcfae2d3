import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { liveThrough, SIGNER, TURNS } from '../../../test/skill-life-property.js';

it('reaches no active skill without the signed proof for its digest', { timeout: 120_000 }, async () => {
  let [calls, active] = [0, 0];
  await fc.assert(
    fc.asyncProperty(TURNS, async (turns) => {
      const lived = await liveThrough(new FakeProceduralMemory({ now: () => 0 }, SIGNER), turns);
      calls += lived.calls;
      active += lived.active;
    }),
    { numRuns: 100 },
  );
  console.info(`${calls} calls on the fake registry, ${active} active skills looked at behind them`);
  expect(active).toBeGreaterThan(100);
});
