import { describe, expect, it } from 'vitest';
import { decideAtOnce } from '../../../test/decisions-property.js';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { ONE_IS_ACTIVE } from '../../../test/one-active-property.js';
import { storeAt } from '../../../test/skill-lives.js';
import { rollbackSkill } from './decisions.js';
import { keyOf } from './skill-life.js';

const decision = (at: number) => ({ by: 'ann', reason: '', at: NEW_YEAR + at });

const open = () => ({ registries: [new FakeProceduralMemory()] as const });

describe('at most one version of an owner is active', () => {
  it('whoever decides what at once', async () => {
    const { inUse, aborted, refused } = await decideAtOnce(ONE_IS_ACTIVE, open, { numRuns: 100 });
    console.info(`${inUse} times one was active, ${aborted + refused} decisions were refused`);
    expect(inUse).toBeGreaterThan(50);
    expect(aborted + refused).toBeGreaterThan(20);
  });

  it('also where a move forgets the other one', async () => {
    const registry = new FakeProceduralMemory();
    const first = await storeAt(registry, skillOf({ status: 'active' }));
    const second = await storeAt(registry, skillOf({ code: 'print(2)', status: 'pending_review' }));
    await expect(registry.move([{ key: keyOf(second), to: 'active', ...decision(1) }])).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining('version 1 of skill "sum_even" became active meanwhile') as string,
    });
    const away = { key: keyOf(first), to: 'deprecated', ...decision(2) } as const;
    await registry.move([{ key: keyOf(second), to: 'active', ...decision(2) }, away]);
    expect((await registry.versions(SCOPE, 'sum_even')).map(({ status }) => status)).toEqual(['active', 'deprecated']);
  });

  it("and another user's is another one", async () => {
    const registry = new FakeProceduralMemory();
    await storeAt(registry, skillOf({ status: 'active' }));
    await storeAt(registry, skillOf({ status: 'active', scope: { ...SCOPE, user: 'ann' } }));
    expect(await registry.versions({ tenant: 'acme', agent: 'coder' }, 'sum_even', 'active')).toHaveLength(2);
  });

  it('and of two that roll back at once one is told', async () => {
    const registry = new FakeProceduralMemory();
    for (const letter of ['a', 'b', 'c']) await storeAt(registry, skillOf({ code: `print('${letter}')`, status: 'active' }));
    const present = skillOf();
    const both = [1, 2].map((toVersion) => rollbackSkill(registry, present, { ...decision(toVersion), toVersion }));
    expect((await Promise.allSettled(both)).map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});
