import { expect, it } from 'vitest';
import { NEW_YEAR, SCOPE } from '../../../test/memory-records.js';
import { DAY_MS, provenSkill, Shelf } from '../../../test/hygiene-fixture.js';
import { pruneSkills } from './prune.js';
import { afterOffers, skillStats } from './usage.js';

const usage = { offered: 5, used: 4, fellBack: 1, lastUsedAt: 1, failures: [], outputs: [], nondeterministic: false };

it('adds up the counts of each agent’s skills', async () => {
  const stats = await skillStats([
    provenSkill('a', { usage, executionCount: 3 }),
    provenSkill('a', { version: 2, status: 'candidate' }),
    provenSkill('b', { scope: { ...SCOPE, agent: 'tester' } }),
  ]);
  expect(stats.agents).toEqual([
    { agent: 'coder', byStatus: { active: 1, candidate: 1 }, offered: 5, used: 4, succeeded: 3, fellBack: 1 },
    { agent: 'tester', byStatus: { active: 1 }, offered: 0, used: 0, succeeded: 0, fellBack: 0 },
  ]);
});

it('names the most used, the failing and the unused', async () => {
  const skills = [
    provenSkill('busy', { usage: { ...usage, used: 9 }, successRate: 0.9 }),
    provenSkill('bad', { usage, successRate: 0.3 }),
    provenSkill('worse', { usage, successRate: 0.1 }),
    provenSkill('young', { createdAt: 2 }),
    provenSkill('old', { createdAt: 1 }),
    provenSkill('loaded', { usage: { ...usage, used: 0, lastUsedAt: 1 } }),
    provenSkill('gone', { status: 'archived' }),
  ];
  const { mostUsed, failing, unused } = await skillStats(skills);
  expect([mostUsed, failing, unused].map((list) => list.map(({ name }) => name))).toEqual([
    ['busy', 'bad', 'worse'],
    ['worse', 'bad'],
    ['old', 'young'],
  ]);
});

const offerOf = (name: string) => ({ ...SCOPE, name, version: 1 });

it('counts a load as activity for pruning and for unused skills', async () => {
  const at = NEW_YEAR + 100 * DAY_MS;
  const loaded = afterOffers(provenSkill('loaded'), [{ ...offerOf('loaded'), loadedAt: at - DAY_MS }, offerOf('loaded')]);
  const shown = afterOffers(provenSkill('shown'), [offerOf('shown')]);
  const input = { tenant: 'acme', agent: null, policy: { unusedDays: 30 }, pruneId: 'p1', by: 'ann', dryRun: true, at };
  const { pruned } = await pruneSkills(input, new Shelf(loaded, shown));
  expect(pruned.map(({ skill, reason }) => `${skill.name}: ${reason}`)).toEqual(['shown: not used for 100 days']);
  expect((await skillStats([loaded, shown])).unused.map(({ name }) => name)).toEqual(['shown']);
});
