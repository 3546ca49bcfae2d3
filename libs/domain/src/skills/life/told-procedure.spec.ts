import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { SCOPE } from '../../../test/memory-records.js';
import { replacedByTelling, toldProcedure } from './told-procedure.js';

const telling = (words: string, at: number) => ({ scope: SCOPE, name: 'moor', words, by: 'ann', at });

/** All that were told one after the other, newest first, where nothing went out of use: every writer was lost. */
function leftBy(...words: readonly string[]): readonly Skill[] {
  return words.reduce<readonly Skill[]>((known, one, i) => [toldProcedure(telling(one, i), known, false).version, ...known], []);
}
const statusesOf = (skills: readonly Skill[]) => skills.map(({ version, status }) => [version, status]);

describe('what goes out of use behind a telling', () => {
  it('is every version that was told before, also what lost writers left', () => {
    const replaced = replacedByTelling(telling('three', 9), leftBy('one', 'two', 'three'));
    expect(statusesOf(replaced)).toEqual([
      [2, 'deprecated'],
      [1, 'deprecated'],
    ]);
    expect(replaced[1]?.history?.at(-1)).toEqual({
      at: 9,
      by: 'ann',
      from: 'active',
      to: 'deprecated',
      reason: 'told in other words: version 3',
    });
  });

  it('is nothing where one version is in use, or none', () => {
    const [only] = leftBy('one');
    if (only === undefined) throw new Error('nothing was told');
    expect(replacedByTelling(telling('one', 9), [only])).toEqual([]);
    expect(replacedByTelling(telling('one', 9), [{ ...only, status: 'archived' }])).toEqual([]);
  });

  it('is nothing that somebody decided on, nor what waits', () => {
    const [newest, decided, waiting] = leftBy('one', 'two', 'three');
    if (newest === undefined || decided === undefined || waiting === undefined) throw new Error('not everything was told');
    const approved = { at: 5, by: 'ann', from: 'pending_review', to: 'active', reason: '' } as const;
    const versions: Skill[] = [
      newest,
      { ...decided, history: [...(decided.history ?? []), approved] },
      { ...waiting, status: 'pending_review' },
    ];
    expect(replacedByTelling(telling('three', 9), versions)).toEqual([]);
  });
});
