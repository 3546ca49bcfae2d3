import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { seesNothingOfOthers, STEPS } from '../../../test/unseen-skills-property.js';

it("shows a user nothing that another user's private skills change", async () => {
  let [answers, unseen] = [0, 0];
  await fc.assert(
    fc.asyncProperty(STEPS, async (steps) => {
      const counted = await seesNothingOfOthers(new FakeProceduralMemory(), new FakeProceduralMemory(), steps);
      answers += counted.answers;
      unseen += counted.unseen;
    }),
    { numRuns: 100 },
  );
  expect(answers).toBeGreaterThan(500);
  expect(unseen).toBeGreaterThan(250);
});
