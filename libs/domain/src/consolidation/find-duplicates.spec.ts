import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import type { ProceduralMemory } from '../ports/memory.js';
import { provenSkill } from '../../test/hygiene-fixture.js';
import { NEW_YEAR, SCOPE } from '../../test/memory-records.js';
import { describeDuplicate, findDuplicates } from './find-duplicates.js';

const signal = new AbortController().signal;

/** Skills whose descriptions are equal are as near as can be. */
function memoryOf(skills: readonly Skill[]): Pick<ProceduralMemory, 'search'> {
  return {
    search: async (scope, { text }) =>
      skills
        .filter((skill) => skill.description === text && skill.scope.agent === scope.agent)
        .map((skill) => ({ skill, similarity: 0.95, score: 1 })),
  };
}

const find = async (skills: readonly Skill[], since = 0) =>
  (await findDuplicates(skills, since, memoryOf(skills), signal)).map(({ keep, merge }) => `${merge.name} into ${keep.name}`);

describe('findDuplicates', () => {
  it('proposes to merge what says nearly the same into what is used more', async () => {
    const rare = provenSkill('a_rare', { executionCount: 1 });
    const busy = provenSkill('b_busy', { executionCount: 9 });
    expect(await find([rare, busy, provenSkill('other', { description: 'Feeds a walrus.' })])).toEqual(['a_rare into b_busy']);
  });

  it('never proposes to merge across agents, users or kinds', async () => {
    const one = provenSkill('one');
    expect(await find([one, provenSkill('two', { scope: { ...SCOPE, agent: 'other' } })])).toEqual([]);
    expect(await find([one, provenSkill('two', { scope: { ...SCOPE, user: 'ann' } })])).toEqual([]);
    expect(await find([one, provenSkill('two', { kind: 'snippet' })])).toEqual([]);
  });

  it('proposes each once, and nothing into what is given up', async () => {
    expect(await find(['one', 'two', 'three'].map((name, at) => provenSkill(name, { executionCount: 9 - at })))).toEqual([
      'two into one',
      'three into one',
    ]);
  });

  it('looks only at what changed since', async () => {
    expect(await find([provenSkill('one'), provenSkill('two')], NEW_YEAR + 1)).toEqual([]);
  });

  it('says what to do, and does nothing', async () => {
    const skills = [provenSkill('one'), provenSkill('two')];
    const duplicates = await findDuplicates(skills, 0, memoryOf(skills), signal);
    expect(duplicates.map(describeDuplicate)).toEqual([
      'skills one@1 and two@1 of coder seem to do the same (similarity 0.95); to merge them after a look: etude skills deprecate two@1 --agent coder --replaced-by one',
    ]);
  });
});
