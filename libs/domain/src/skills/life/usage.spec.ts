import { expect, it } from 'vitest';
import { SCOPE } from '../../../test/memory-records.js';
import { provenSkill } from '../../../test/hygiene-fixture.js';
import { skillStats } from './usage.js';

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
