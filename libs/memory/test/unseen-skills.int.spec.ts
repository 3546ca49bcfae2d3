import { seesNothingOfOthers, STEPS } from '@etude/domain/testing/unseen-skills-property';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { modelStore } from './model-store.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryStore } from './temporary-store.js';

const TIMEOUT_MS = 240_000;

interface Opened {
  readonly store: RecordStore;
  readonly close: () => Promise<unknown>;
}

async function see(
  open: () => Promise<Opened>,
  { numRuns, stepsMax = Infinity }: { readonly numRuns: number; readonly stepsMax?: number },
) {
  const seen = { answers: 0, unseen: 0 };
  const property = fc.asyncProperty(STEPS, async (steps) => {
    const [whole, without] = [await open(), await open()];
    try {
      const counted = await seesNothingOfOthers(registryOver(whole.store), registryOver(without.store), steps.slice(0, stepsMax));
      seen.answers += counted.answers;
      seen.unseen += counted.unseen;
    } finally {
      await whole.close();
      await without.close();
    }
  });
  await fc.assert(property, { numRuns });
  console.info(`${seen.answers} answers were the same with ${seen.unseen} calls of another user and without`);
  return seen;
}

it("shows a user nothing that another user's private skills change, over a plain array", { timeout: TIMEOUT_MS }, async () => {
  const seen = await see(async () => ({ store: modelStore(), close: async () => undefined }), { numRuns: 40 });
  expect(Math.min(seen.answers, seen.unseen)).toBeGreaterThan(40);
});

it("shows a user nothing that another user's private skills change, in SQLite", { timeout: TIMEOUT_MS }, async () => {
  const seen = await see(() => temporaryStore({ model: LEXICAL_MODEL }), { numRuns: 12 });
  expect(Math.min(seen.answers, seen.unseen)).toBeGreaterThan(12);
});

describeOnQdrant({ name: "what another user's skills change" }, (server) => {
  it('is nothing that a user is shown', { timeout: TIMEOUT_MS }, async () => {
    const seen = await see(openOnQdrant(server, LEXICAL_MODEL), { numRuns: 3, stepsMax: 24 });
    expect(Math.min(seen.answers, seen.unseen)).toBeGreaterThan(3);
  });
});
