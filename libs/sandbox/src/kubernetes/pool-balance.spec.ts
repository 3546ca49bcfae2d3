import { describe, expect, it } from 'vitest';
import { planRefill, type PoolSituation } from './pool-balance.js';

const sizes = { max: 10, free: 4 };
const full: PoolSituation = {
  sizes,
  supply: 4,
  free: 4,
  starting: 0,
  places: 4,
  waiting: 0,
  owed: 0,
  adopt: false,
  startsMax: 3,
  quiet: true,
};
const short = { ...full, supply: 1, free: 1 };

describe('the plan for a pool', () => {
  it('leaves a full pool alone', () => {
    expect(planRefill(full)).toMatchObject({ create: 0, short: 0 });
  });

  it('replaces what it owes, and leaves the rest to who owes it', () => {
    expect(planRefill({ ...short, owed: 2 }).create).toBe(2);
    expect(planRefill(short).create).toBe(0);
  });

  it('makes up what nobody replaced after a while', () => {
    expect(planRefill({ ...short, adopt: true }).create).toBe(3);
  });

  it('waits for a quiet moment until half of the free ones are used up', () => {
    const two = { ...short, supply: 2, free: 2, owed: 2, quiet: false };
    expect(planRefill(two)).toMatchObject({ urgent: false, create: 0 });
    expect(planRefill({ ...two, quiet: true }).create).toBe(2);
    expect(planRefill({ ...two, supply: 1, free: 1 })).toMatchObject({ urgent: true, create: 2 });
  });

  it('never starts more at once than it may', () => {
    expect(planRefill({ ...short, starting: 2, owed: 9, sizes: { ...sizes, free: 9 } }).create).toBe(1);
  });

  it('starts a pod at once for each claim that waits', () => {
    const none = { ...full, supply: 0, free: 0, places: 0, waiting: 2 };
    expect(planRefill({ ...none, sizes: { ...sizes, free: 0 }, quiet: false }).create).toBe(2);
  });

  it('never takes more places than there are', () => {
    expect(planRefill({ ...short, places: 9, adopt: true })).toMatchObject({ create: 1, short: 1 });
    expect(planRefill({ ...short, places: 12, adopt: true })).toMatchObject({ create: 0, short: 0 });
  });

  it('remembers what it owes until there is room', () => {
    expect(planRefill({ ...short, places: 10, owed: 3 })).toMatchObject({ create: 0, owed: 3 });
  });
});
