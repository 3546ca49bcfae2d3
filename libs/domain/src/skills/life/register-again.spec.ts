import type { SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../testing/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../testing/memory-records.js';
import { storeAt } from '../../testing/skill-lives.js';
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

  it('says what was not taken where nothing of the content changed', async () => {
    const procedural = new FakeProceduralMemory();
    const deps = { procedural, settings: { enabled: true, maxSkills: 0 }, clock: { now: () => NEW_YEAR + 60_000 } };
    const first = await registerSkill(skillOf(), {}, deps);
    expect(await registerSkill(skillOf(), {}, deps)).toEqual(first);
    const heldOut: SkillTest[] = [{ kind: 'call', args: [[4]], kwargs: {}, expected: 4, tolerance: 0 }];
    await expect(registerSkill(skillOf({ description: 'Other words.', tags: ['new'] }), {}, deps)).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      details: { metadata: { not_taken: 'description, tags' } },
    });
    await expect(registerSkill(skillOf({ heldOut: heldOut }), {}, deps)).rejects.toMatchObject({
      details: { metadata: { not_taken: 'held-out tests' } },
    });
    expect(await procedural.versions(SCOPE, 'sum_even')).toEqual([first]);
  });
});
