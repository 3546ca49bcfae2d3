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
});
