import type { Clock } from '@etude/domain/ports/clock';
import type { ReadScope } from '@etude/domain/ports/memory';
import { withMemory } from '@etude/domain/testing/memory-conformance-start';
import { episodeOf, factOf, NEW_YEAR, SCOPE, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { storeAt } from '@etude/domain/testing/skill-lives';
import { describe, expect } from 'vitest';
import type { Memory } from '../src/memory.js';
import type { MemoryUnderTest } from './layers-isolation.js';

const ALL = { tenant: 'acme', agent: null };
const CONTEXT = 'sum the even numbers of a list';
const YEAR_MS = 365 * 86_400_000;
const A_YEAR_LATER: Clock = { now: () => NEW_YEAR + YEAR_MS };

/** The behaviour of all three layers together. `open` is called once per test. */
export function memoryRecallConformance(open: (options: { readonly clock: Clock }) => Promise<MemoryUnderTest>): void {
  const it = withMemory(() => open({ clock: A_YEAR_LATER }));
  describe('as a whole', () => {
    it('recalls different facts, experiences and procedures with their sources', async ({ memory }) => {
      await fill(memory);
      const { facts, experiences, procedures, tokens, missing } = await memory.recall(ALL, { context: CONTEXT });
      expect(facts.map(({ kind }) => kind).toSorted()).toEqual(['fact', 'reflection']);
      expect(procedures.map(({ id, sources }) => [id, sources])).toEqual([['sum_even@1', ['tasks/tabcdefgh']]]);
      expect(experiences.map(({ kind, sources }) => [kind, sources])).toEqual([['transition', ['tabcdefgh-r1']]]);
      const texts = [...facts, ...experiences, ...procedures].map(({ text }) => Math.ceil(text.length / 4));
      expect(tokens).toBe(texts.reduce((sum, count) => sum + count, 0));
      expect(missing).toEqual([]);
    });

    it('recalls skills that are shared with the reader, no other user’s, and counts that they were offered', async ({ memory }) => {
      const owners = {
        own: SCOPE,
        anns: { ...SCOPE, user: 'ann' },
        bobs: { ...SCOPE, user: 'bob' },
        ann_shares: { tenant: 'acme', agent: '@user', user: 'ann' },
        all_agents: { tenant: 'acme', agent: '@tenant', user: null },
        all_tenants: { tenant: '@global', agent: '@tenant', user: null },
        elsewhere: { ...SCOPE, agent: 'other' },
      };
      for (const [name, scope] of Object.entries(owners))
        await storeAt(memory.procedural, skillOf({ name, scope, status: 'active', code: `def ${name}(xs): return sum(xs)` }));
      const recalled = async (scope: ReadScope) =>
        (await memory.recall(scope, { context: CONTEXT, procedures: 9, tokensMax: 9_000 })).procedures.map(({ title }) => title).toSorted();
      const coder = { tenant: 'acme', agent: SCOPE.agent };
      expect(await recalled(coder)).toEqual(['all_agents', 'all_tenants', 'own']);
      expect(await recalled({ ...coder, user: 'ann' })).toEqual(['all_agents', 'all_tenants', 'ann_shares', 'anns', 'own']);
      expect(await recalled(ALL)).toEqual(['all_agents', 'all_tenants', 'elsewhere', 'own']);
      const offers = async (name: keyof typeof owners) => (await memory.procedural.versions(owners[name], name))[0]?.usage?.offered ?? 0;
      expect(await Promise.all((['own', 'all_tenants', 'anns', 'bobs', 'elsewhere'] as const).map(offers))).toEqual([2, 2, 1, 0, 0]);
    });

    it('gives any record by the id of its hit', async ({ memory }) => {
      await fill(memory);
      for (const layer of ['episodic', 'semantic'] as const) {
        const hits = await memory[layer].search(ALL, { text: CONTEXT, limit: 9 });
        for (const { id } of hits) {
          expect(await memory.get(ALL, layer, id)).toMatchObject({ id, layer, fields: { id } });
          expect(await memory.get({ tenant: 'beta', agent: null }, layer, id)).toBeNull();
        }
        expect(hits.length).toBeGreaterThan(1);
      }
      expect(await memory.get(ALL, 'episodic', 'nothing')).toBeNull();
    });

    it('finds archived records only with `archived`, until they are restored', async ({ memory }) => {
      await fill(memory);
      const query = { text: CONTEXT, limit: 9 };
      const found = async (archived: boolean) => {
        const hits = await Promise.all([
          memory.episodic.search(ALL, { ...query, archived }),
          memory.semantic.search(ALL, { ...query, archived }),
        ]);
        const skills = await memory.procedural.search(ALL, { ...query, archived });
        return [...hits.map((each) => each.length), skills.length];
      };
      const all = await found(false);
      const { archived } = await memory.upkeep.archive({ tenant: 'acme' }, { scoreMax: 1 }, { dryRun: false });
      expect(archived).toBeGreaterThan(4);
      expect(await found(false)).toEqual([0, 0, 0]);
      expect(await found(true)).toEqual(all);
      expect(await memory.procedural.byFingerprint(ALL, 'f1')).toEqual([]);
      expect(await memory.upkeep.restore({ tenant: 'acme' })).toBe(archived);
      expect(await found(false)).toEqual(all);
    });
  });
}

/** Stores the transition, episode, fact and skill of one solved task. */
async function fill({ episodic, semantic, procedural }: Memory): Promise<void> {
  await episodic.storeTransition(transitionOf());
  await episodic.storeEpisode(episodeOf({ reflection: 'The sum of even numbers of an empty list is 0.' }));
  await semantic.store('w1', factOf({ text: 'A list of even numbers has an even sum.' }));
  await storeAt(procedural, skillOf({ scope: SCOPE, status: 'active' }));
}
