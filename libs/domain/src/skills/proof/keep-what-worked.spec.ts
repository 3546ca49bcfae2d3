import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { skillOf } from '../../../test/bundle-fixture.js';
import { gatherGround } from './keep-what-worked.js';

describe('a skill with a similar description', () => {
  const inner = skillOf('inner', 'def inner(n):\n    return n');
  const other = skillOf('other', 'from skills import inner\ndef other(n):\n    return inner(n)', { needs: [inner] });
  const ground = (versions: () => Promise<Skill[]>) => {
    const hit = { skill: other, similarity: 0.9, score: 0.9 };
    const procedural = Object.assign(new FakeProceduralMemory().keep(other), {
      search: async ({ tenant }: { tenant: string }) => (tenant === 'acme' ? [hit] : []),
    });
    const own = procedural.versions.bind(procedural);
    Object.assign(procedural, { versions: async (...of: Parameters<typeof own>) => (of[1] === 'inner' ? versions() : own(...of)) });
    return gatherGround(skillOf('step', 'def step(n):\n    return n'), procedural, () => true);
  };

  it('is compared with all its callees, or not at all', async () => {
    expect((await ground(async () => [inner])).similar).toMatchObject([{ skill: { name: 'other' }, needed: [{ name: 'inner' }] }]);
    expect((await ground(async () => [])).similar).toEqual([]);
  });

  it('is not skipped where the memory fails', async () => {
    const lost = ground(() => Promise.reject(new EtudeError('MEMORY_UNAVAILABLE', 'the memory is away')));
    await expect(lost).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });
});
