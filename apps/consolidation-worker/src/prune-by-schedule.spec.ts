import { MemoryUpkeepJob } from '@etude/contracts/queues';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { DAY_MS, provenSkill, Shelf } from '@etude/domain/testing/hygiene-fixture';
import { NEW_YEAR } from '@etude/domain/testing/memory-records';
import { expect, it } from 'vitest';
import { pruneBySchedule } from './memory.processors.js';

const clock = { now: () => NEW_YEAR + 100 * DAY_MS };
const template = {
  v: 1,
  work: 'prune',
  tenant: 'acme',
  id: 'nightly-acme',
  failingRateMax: 0,
  failingUsesMin: 5,
  supersededDays: 0,
} as const;
const firing = MemoryUpkeepJob.firing?.({ ...template, unusedDays: 90 }, 77);
const prune = (shelf: Shelf) => (firing?.work === 'prune' ? pruneBySchedule(firing, { memory: shelf, clock }) : null);

it('prunes by the limits of the schedule, once per firing', async () => {
  const leaf = provenSkill('leaf');
  const shelf = new Shelf(leaf, provenSkill('top', { dependencies: [dependencyOn(leaf)] }));
  expect(await prune(shelf)).toBe(2);
  expect(await prune(shelf)).toBe(2);
  expect(shelf.moves.map(({ key, by }) => [key.name, by])).toEqual([
    ['top', 'pruning'],
    ['leaf', 'pruning'],
  ]);
});
