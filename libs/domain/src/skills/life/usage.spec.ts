import { expect, it } from 'vitest';
import { SCOPE } from '../../../test/memory-records.js';
import { registryOf } from '../../../test/bundle-fixture.js';
import { FakeMemoryOutbox } from '../../../test/fake-memory-outbox.js';
import { provenSkill } from '../../../test/hygiene-fixture.js';
import { skillStats } from './usage.js';
import { countWordsUsed } from './told-procedure.js';

const usage = { offered: 5, used: 4, fellBack: 1, lastUsedAt: 1, failures: [], outputs: [], nondeterministic: false };

it('adds up the counts of each agent’s skills', async () => {
  const stats = await skillStats([
    provenSkill('a', { usage, executionCount: 3 }),
    provenSkill('a', { version: 2, status: 'candidate' }),
    provenSkill('b', { scope: { ...SCOPE, agent: 'tester' } }),
  ]);
  expect(stats.agents).toEqual([
    { agent: 'coder', byStatus: { active: 1, candidate: 1 }, offeredCount: 5, usedCount: 4, succeededCount: 3, fellBackCount: 1 },
    { agent: 'tester', byStatus: { active: 1 }, offeredCount: 0, usedCount: 0, succeededCount: 0, fellBackCount: 0 },
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

it.each([
  ['stack', 'class Stack(list):\n    pass\n', 1],
  ['stack', 'from x import Stack\n', 0],
  ['half', 'x = 1\n\ndef half(n):\n  return n / 2\n', 1],
  ['half', 'def half(n):\n    return n // 2\n', 0],
])('counts a use of the shown skill %s that the accepted code has copied: %j', async (name, code, uses) => {
  const stack = provenSkill('stack', { kind: 'snippet', entryPoint: 'Stack' });
  const procedural = registryOf(stack, provenSkill('half', { code: 'def half(n):\n    return n / 2\n' }));
  const outbox = new FakeMemoryOutbox();
  await countWordsUsed({ procedural, outbox }, SCOPE, { names: [`${name}@1`], success: true, code, useId: 'r', at: 1 });
  expect(outbox.of('skill_use')).toHaveLength(uses);
});
