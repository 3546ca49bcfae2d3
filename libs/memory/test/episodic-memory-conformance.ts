import { describe, expect } from 'vitest';
import type { Memory } from '../src/memory.js';
import type { MakeMemory } from '@etude/domain/testing/memory-conformance-start';
import { ALL, requireRefusals, SCOPES_WITHOUT_TENANT, withMemory } from '@etude/domain/testing/memory-conformance-start';
import { episodeOf, NEW_YEAR, SCOPE, transitionOf } from '@etude/domain/testing/memory-records';

const DAY_MS = 86_400_000;

/** The promises of every EpisodicMemory, whatever store it uses. */
export function episodicMemoryConformance(make: MakeMemory<Memory['episodic']>): void {
  const it = withMemory(make);
  describe('as an EpisodicMemory', () => {
    it('returns transitions in order and in full', async ({ memory }) => {
      const long = `${'é😀\u0000\n"\\'.repeat(700_000)}end`;
      const second = transitionOf({ id: 't2', attempt: 2, feedback: long, code: long.slice(7), critique: 'why\ud800' });
      await memory.storeTransition(second);
      await memory.storeTransition(transitionOf({ id: 't1' }));
      expect(long.length).toBeGreaterThan(4_900_000);
      const found = await memory.transitions(ALL, second.rolloutId);
      expect(found.map(({ id }) => id)).toEqual(['t1', 't2']);
      expect(found[1]).toEqual(second);
    });

    it('keeps the first record stored under an id', async ({ memory }) => {
      await memory.storeTransition(transitionOf());
      await memory.storeTransition(transitionOf());
      await memory.storeTransition(transitionOf({ code: 'other' }));
      await memory.storeEpisode(episodeOf());
      await memory.storeEpisode(episodeOf({ summary: 'other' }));
      expect(await memory.transitions(ALL, 'tabcdefgh-r1')).toEqual([transitionOf()]);
      expect(await memory.recent(ALL, 0, 10)).toEqual([episodeOf()]);
      expect(await memory.search(ALL, { text: 'even numbers summed', limit: 10 })).toHaveLength(2);
    });

    it('finds transitions by prompt and draft, episodes by all their texts', async ({ memory }) => {
      await memory.storeTransition(transitionOf({ draft: 'use a sieve of Eratosthenes' }));
      await memory.storeEpisode(episodeOf({ summary: 'Overflowed a buffer.', reflection: 'Bisection would have converged.' }));
      const kindOf = async (text: string) => (await memory.search(ALL, { text, limit: 1 }))[0]?.kind;
      expect(await kindOf('sieve eratosthenes')).toBe('transition');
      expect(await kindOf('buffer overflowed')).toBe('episode');
      expect(await kindOf('bisection')).toBe('episode');
    });

    it('finds told episodes by context, actions, skills and outcomes', async ({ memory }) => {
      const experience = { context: ['A walrus waits.'], actions: ['threw a salmon'], outcomes: [{ type: 'applause', loud: 'very' }] };
      await memory.storeEpisode(episodeOf({ experience, summary: 'Fed it.', skillsUsed: ['feed_animals'], reflection: 'Bring gloves.' }));
      for (const text of ['walrus', 'salmon', 'feed animals', 'applause', 'gloves']) {
        expect((await memory.search(ALL, { text, limit: 1 })).map(({ title }) => title)).toEqual(['A walrus waits.']);
      }
      expect(await memory.recent(ALL, 0, 1)).toMatchObject([{ experience }]);
    });

    it('lists untrusted sources with a hit', async ({ memory }) => {
      const touched = ['episodes/taaaaaaaa-r1', 'documents/d1', 'skills/a@1'];
      await memory.storeTransition(transitionOf({ touched }));
      await memory.storeEpisode(episodeOf({ touched }));
      const hits = await memory.search(ALL, { text: 'even numbers summed', limit: 10 });
      expect(Object.fromEntries(hits.map(({ kind, sources }) => [kind, sources]))).toEqual({
        episode: ['tabcdefgh-r1', 'documents/d1'],
        transition: ['tabcdefgh-r1', 'documents/d1'],
      });
      expect(await memory.recent(ALL, 0, 10)).toEqual([episodeOf({ touched })]);
    });

    it('lists the origin of a hit', async ({ memory }) => {
      await memory.storeTransition(transitionOf());
      const [hit] = await memory.search(ALL, { text: transitionOf().prompt, limit: 1, explain: true });
      expect(hit).toMatchObject({
        id: transitionOf().id,
        layer: 'episodic',
        agent: 'coder',
        createdAt: NEW_YEAR,
        sources: ['tabcdefgh-r1'],
      });
      expect(hit?.title).toBe('Sum the even numbers of a list.');
      expect(hit?.text).toContain('def total');
      expect(hit?.similarity).toBeGreaterThan(0.9);
      expect(hit?.explanation).toMatchObject({ similarity: hit?.similarity, score: hit?.score });
      expect((await memory.search(ALL, { text: 'even', limit: 1 }))[0]).not.toHaveProperty('explanation');
    });

    it('returns at most the limit, and nothing below the minimum', async ({ memory }) => {
      for (let i = 0; i < 8; i += 1)
        await memory.storeTransition(transitionOf({ id: `t${i}`, prompt: `even numbers ${'walrus '.repeat(i)}` }));
      expect(await memory.search(ALL, { text: 'even numbers', limit: 3 })).toHaveLength(3);
      expect(await memory.search(ALL, { text: 'even numbers', limit: 0 })).toEqual([]);
      const close = await memory.search(ALL, { text: 'even numbers', limit: 8, similarityMin: 0.9 });
      expect(close.length).toBeGreaterThan(0);
      expect(close.every(({ similarity }) => similarity >= 0.9)).toBe(true);
      expect(await memory.search(ALL, { text: 'zebra crossing', limit: 8, similarityMin: 0.1 })).toEqual([]);
    });

    it('lists recent episodes newest first', async ({ memory }) => {
      for (const age of [3, 1, 2, 9]) await memory.storeEpisode(episodeOf({ id: `e${age}`, createdAt: NEW_YEAR - age * DAY_MS }));
      expect((await memory.recent(ALL, NEW_YEAR - 5 * DAY_MS, 10)).map(({ id }) => id)).toEqual(['e1', 'e2', 'e3']);
      expect((await memory.recent(ALL, 0, 2)).map(({ id }) => id)).toEqual(['e1', 'e2']);
      expect(await Array.fromAsync(memory.every(ALL, NEW_YEAR - 5 * DAY_MS), ({ id }) => id)).toEqual(['e1', 'e2', 'e3']);
    });

    it('refuses to work without a tenant', async ({ memory }) => {
      await memory.storeTransition(transitionOf());
      for (const scope of SCOPES_WITHOUT_TENANT) {
        const search = memory.search(scope, { text: 'even', limit: 1 });
        await requireRefusals(search, memory.recent(scope, 0, 1), memory.transitions(scope, 'tabcdefgh-r1'));
      }
      const nobody = { ...SCOPE, tenant: '' };
      await requireRefusals(memory.storeTransition(transitionOf({ scope: nobody })), memory.storeEpisode(episodeOf({ scope: nobody })));
    });
  });
}
