import { decideAtOnce } from '@etude/domain/testing/decisions-property';
import { ONE_IS_ACTIVE } from '@etude/domain/testing/one-active-property';
import { expect, it } from 'vitest';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { twoOnOneFile, twoOnQdrant } from './two-registries.js';

const TIMEOUT_MS = 240_000;

it('leaves at most one version active in a SQLite file that two have open', { timeout: TIMEOUT_MS }, async () => {
  const { inUse, aborted, refused } = await decideAtOnce(ONE_IS_ACTIVE, twoOnOneFile, { numRuns: 40 });
  console.info(`${inUse} times one was active in SQLite, ${aborted + refused} decisions were refused`);
  expect(inUse).toBeGreaterThan(20);
  expect(aborted + refused).toBeGreaterThan(10);
});

describeOnQdrant({ name: 'versions of a skill' }, (server) => {
  it('leaves at most one version active, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const { inUse } = await decideAtOnce(ONE_IS_ACTIVE, () => twoOnQdrant(server), { numRuns: 6, turnsMax: 4 });
    expect(inUse).toBeGreaterThan(0);
  });
});
