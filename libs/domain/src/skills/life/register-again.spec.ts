import type { SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { storeAt } from '../../../test/skill-lives.js';
import { registerSkill } from './register-skill.js';
import { keyOf } from './skill-life.js';

describe('registerSkill of content that there is', () => {
  it('stores nothing where a version with this content was given up, and says how it comes back', async () => {
    const procedural = new FakeProceduralMemory();
    const deps = { procedural, settings: { enabled: true, maxSkills: 0 }, clock: { now: () => NEW_YEAR + 60_000 } };
    const first = await storeAt(procedural, skillOf({ status: 'deprecated' }));
    await storeAt(procedural, skillOf({ code: "print('b')", status: 'active' }));
    await expect(registerSkill(skillOf(), { baseVersion: 1 }, deps)).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('it is deprecated, and version 2 is active. Nothing was stored: a reviewer rolls back to version 1'),
      details: { metadata: { version: '1', status: 'deprecated' } },
    });
    await procedural.move([{ key: keyOf(first), to: 'archived', by: 'ann', reason: 'old', at: NEW_YEAR + 9 }]);
    await expect(registerSkill(skillOf(), {}, deps)).rejects.toMatchObject({ message: expect.stringContaining('restores sum_even@1') });
    expect(await procedural.versions(SCOPE, 'sum_even')).toHaveLength(2);
  });

  it('takes other words alone as the next version, and adds sources to the one that is there', async () => {
    const procedural = new FakeProceduralMemory();
    const deps = { procedural, settings: { enabled: true, maxSkills: 1 }, clock: { now: () => NEW_YEAR + 60_000 } };
    const first = await registerSkill(skillOf(), {}, deps);
    expect(await registerSkill(skillOf(), {}, deps)).toEqual(first);
    const heldOut: SkillTest[] = [{ kind: 'call', args: [[4]], kwargs: {}, expected: 4, tolerance: 0 }];
    const origins = ['person', 'request', 'tool', 'import'] as const;
    for (const [at, origin] of origins.entries())
      expect(await registerSkill(skillOf({ origin, description: `Words ${at}.` }), {}, deps)).toMatchObject({ version: at + 2 });
    const tested = await registerSkill(skillOf({ heldOut }), {}, deps);
    expect(tested).toMatchObject({ version: 6, heldOut, digest: first.digest });
    const again = await registerSkill(skillOf({ heldOut, sources: ['tasks/tzzzzzzzz'] }), {}, deps);
    expect(again).toMatchObject({ version: 6, sources: ['tasks/tabcdefgh', 'tasks/tzzzzzzzz'] });
  });

  it('makes nothing new of what was rejected by saying it in other words', async () => {
    const procedural = new FakeProceduralMemory();
    const deps = { procedural, settings: { enabled: true, maxSkills: 0 }, clock: { now: () => NEW_YEAR + 60_000 } };
    await storeAt(procedural, skillOf({ status: 'rejected' }));
    expect(await registerSkill(skillOf(), {}, deps)).toMatchObject({ version: 1, status: 'rejected' });
    for (const origin of ['person', 'request'] as const)
      expect(await registerSkill(skillOf({ origin, description: 'Other words.' }), {}, deps)).toMatchObject({
        version: 1,
        status: 'rejected',
      });
    expect(await procedural.versions(SCOPE, 'sum_even')).toHaveLength(1);
  });
});
