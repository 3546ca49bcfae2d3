import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { embedder, episode, scope } from '../../test/consolidation-fixture.js';
import { groupEpisodes } from './pages.js';

const { signal } = new AbortController();

describe('groupEpisodes', () => {
  it('joins similar prompts of one agent and user only', async () => {
    const near = episode('e2', { prompt: 'double the numbers', fingerprint: 'other' });
    const far = episode('e3', { prompt: 'quite unlike', fingerprint: 'far' });
    const others = [episode('e4', { scope: { ...scope, agent: 'b' } }), episode('e5', { scope: { ...scope, user: 'ann' } })];
    const groups = await groupEpisodes([near, far, ...others, episode('e1')], embedder, signal);
    expect(groups.map((group) => group.map(({ id }) => id))).toEqual([['e1', 'e2'], ['e3'], ['e4'], ['e5']]);
  });

  it('does not depend on the order of the episodes', async () => {
    const drawn = fc.array(fc.tuple(fc.stringMatching(/^[a-d]( [a-d]){0,3}$/), fc.nat(5)), { maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(drawn, async (prompts) => {
        const made = prompts.map(([prompt, at], index) => episode(`e${index}`, { prompt, fingerprint: prompt, createdAt: at }));
        expect(await groupEpisodes(made.toReversed(), embedder, signal)).toEqual(await groupEpisodes(made, embedder, signal));
      }),
    );
  });
});
