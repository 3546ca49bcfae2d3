import type { Episode } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { episodeOf } from '../../test/memory-records.js';
import { procedureFromActions } from './propose-skill.js';

const scope = { tenant: 'acme', agent: 'skipper', user: 'ann' };

function told(id: string, actions: readonly string[], over: Partial<Episode> = {}): Episode {
  const experience = { context: ['fog in the channel'], actions: [...actions], outcomes: [] };
  return episodeOf({ id, scope, prompt: 'fog in the channel', experience, success: true, code: null, ...over });
}
const slowly = ['slow down', 'sound the horn', 'post a lookout'];

describe('a procedure from actions', () => {
  it('has the common steps, their success rate, and its episodes as untrusted sources', () => {
    const group = [
      told('x1', slowly),
      told('x2', ['light the lamp', ...slowly]),
      told('x3', slowly, { success: false }),
      told('x4', ['drop anchor'], { success: false }),
    ];
    expect(procedureFromActions(group, [], 7)).toMatchObject({
      name: 'fog_channel',
      kind: 'procedure',
      scope,
      description: '1. slow down\n2. sound the horn\n3. post a lookout',
      successRate: 2 / 3,
      sources: ['episodes/x1', 'episodes/x2', 'episodes/x3'],
      untrusted: expect.arrayContaining([expect.stringContaining('episodes/x2')]),
      origin: 'consolidation',
      cues: ['fog in the channel'],
    });
  });

  it.each([
    ['only one success', [told('x1', slowly), told('x2', slowly, { success: false })]],
    ['successes without a common way', [told('x1', ['a', 'b', 'c']), told('x2', ['c', 'd', 'e'])]],
    ['no actions', [told('x1', []), told('x2', [])]],
    ['episodes of rollouts', [1, 2].map((n) => episodeOf({ id: `t-${n}`, scope, success: true }))],
  ])('is not made from %s', (_what, group) => {
    expect(procedureFromActions(group, [], 7)).toBeNull();
  });

  it('is proposed once, and anew under its name with other steps', () => {
    const known = procedureFromActions([told('x1', slowly), told('x2', slowly)], [], 7)!;
    const same = [told('x1', slowly), told('x2', slowly), told('x3', slowly)];
    const shorter = [...same.slice(0, 2), told('x3', slowly.slice(0, 2))];
    expect(procedureFromActions(same, [known], 8)).toBeNull();
    expect(procedureFromActions(shorter, [known], 8)).toMatchObject({ name: known.name, description: '1. slow down\n2. sound the horn' });
  });

  it('does not take the name of a procedure that somebody told', () => {
    const group = [told('x1', slowly), told('x2', slowly)];
    const mine = { ...procedureFromActions(group, [], 7)!, origin: undefined, digest: 'other' };
    expect(procedureFromActions(group, [mine], 8)?.name).toBe('fog_channel_2');
  });
});
