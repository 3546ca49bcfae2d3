import type { ItemShow } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';
import { withMemory } from '@etude/domain/testing/memory-conformance-start';
import { factOf, NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { storeAt } from '@etude/domain/testing/skill-lives';
import { describe, expect } from 'vitest';
import type { Memory } from '../src/memory.js';
import type { MemoryUnderTest } from './layers-isolation.js';
import { exportOf, linesOf } from './upkeep-samples.js';

const ALL = { tenant: 'acme', agent: null };
const NOW = NEW_YEAR + 1_000;
const { agent, user } = SCOPE;
const show = (id: string, shown: boolean, owner: ItemShow['owner'] = { agent, user }): ItemShow => {
  return { layer: 'semantic', kind: 'fact', id, owner, shown };
};
const writeOf = (shows: ItemShow[], right: boolean) => {
  return { kind: 'shows', scope: SCOPE, shows, right, tokens: 10, at: NEW_YEAR } as const;
};
const listed = async ({ shows }: Memory, scope = ALL, query = {}) => Array.fromAsync(shows.list(scope, query));
const counts = (n: number, right: number) => ({ n, right, tokens: 10 * n, tokensSquared: 100 * n });

/** Tests of the counters of shown items, over every adapter. `open` is called once per test. */
export function itemShowsConformance(open: (options: { readonly clock: Clock }) => Promise<MemoryUnderTest>): void {
  const it = withMemory(() => open({ clock: { now: () => NOW } }));
  describe('counters of shown items', () => {
    it('count each rollout once for each of its items', async ({ memory }) => {
      const first = writeOf([show('f1', true), show('f2', false)], true);
      expect(await memory.appliedWrites.apply('acme', 'r1.shows', first)).toEqual({ applied: true, skill: null });
      expect((await memory.appliedWrites.apply('acme', 'r1.shows', first)).applied).toBe(false);
      // A worker died between the counters and the note.
      await memory.shows.count('r1.shows', first);
      await memory.appliedWrites.apply('acme', 'r2.shows', writeOf([show('f1', true)], false));
      const items = [show('f1', true), show('f2', true), show('f3', true)];
      expect(await memory.shows.counters('acme', items)).toMatchObject([
        { shown: counts(2, 1), withheld: counts(0, 0) },
        { shown: counts(0, 0), withheld: counts(1, 1) },
        null,
      ]);
      expect(await memory.shows.counters('acm', items)).toEqual([null, null, null]);
    });

    it('count rollouts at the same time', async ({ memory }) => {
      await Promise.all(
        Array.from({ length: 12 }, (_, n) => memory.appliedWrites.apply('acme', `r${n}`, writeOf([show('f1', n % 2 === 0)], n < 6))),
      );
      expect(await listed(memory)).toMatchObject([{ shown: counts(6, 3), withheld: counts(6, 3) }]);
    });

    it('belong to the owner of the item, are exported and imported, and are erased with the owner', async ({ memory }) => {
      const anns = { agent, user: 'ann' };
      await memory.appliedWrites.apply('acme', 'r1', writeOf([show('f1', true, anns), show('f2', true)], true));
      const ids = async (scope: typeof ALL & { user?: string }, query = {}) => (await listed(memory, scope, query)).map(({ id }) => id);
      expect(await ids({ ...ALL, user: 'bob' })).toEqual(['f2']);
      expect((await ids({ ...ALL, user: 'ann' })).toSorted()).toEqual(['f1', 'f2']);
      expect(await ids(ALL, { item: 'f1' })).toEqual(['f1']);
      expect(await ids(ALL, { layers: ['episodic'] })).toEqual([]);
      const lines = await exportOf(memory);
      const before = await listed(memory);
      const owners = { tenant: 'acme', user: 'ann' };
      expect(await memory.upkeep.erase(owners, { before: NOW })).toEqual({ 'memory.semantic.shows': 1 });
      expect(await ids(ALL)).toEqual(['f2']);
      const imported = await memory.upkeep.importLines('beta', linesOf(lines), {});
      expect(imported).toMatchObject({ added: 2, refused: [] });
      const copies = await listed(memory, { ...ALL, tenant: 'beta' });
      expect(copies).toEqual(before.map((one) => ({ ...one, scope: { ...one.scope, tenant: 'beta' } })));
    });

    it('are deleted with their item', async ({ memory }) => {
      const { fact } = await memory.semantic.store('w1', factOf({ text: 'Whales sing.', createdAt: NEW_YEAR }));
      await memory.appliedWrites.apply('acme', 'r1', writeOf([show(fact.id, true), show('other', true)], true));
      await memory.upkeep.removeRecord('acme', { name: `facts/${fact.id}`, agent, user }, NOW);
      expect((await listed(memory)).map(({ id }) => id)).toEqual(['other']);
      // A rollout that had recalled the fact ends later.
      await memory.appliedWrites.apply('acme', 'r2', writeOf([show(fact.id, true), show('other', true)], true));
      expect(await listed(memory)).toMatchObject([{ id: 'other', shown: counts(2, 2) }]);
    });

    it('have upkeep archive harmful items once, with the reason', async ({ memory }) => {
      const { fact } = await memory.semantic.store('w1', factOf({ text: 'Whales sing in harbours.', createdAt: NEW_YEAR }));
      const skill = await storeAt(memory.procedural, skillOf({ status: 'active' }));
      const named = { ...show('', true), layer: 'procedural', kind: 'skill', id: `${skill.name}@${skill.version}` } as const;
      const harmful = { shown: { ...counts(200, 80) }, withheld: { ...counts(100, 90) } };
      const items = [show(fact.id, true), named, { ...show('c1.0', true), kind: 'chunk' }];
      await memory.appliedWrites.apply('acme', 'r1', writeOf([...items, show('harmless', true)], true));
      for (const { layer, key, revision, ...record } of await Array.fromAsync(recordsOf(memory))) {
        if (record.fields.id === 'harmless') continue;
        const { value } = JSON.parse(record.body) as { value: object };
        const body = JSON.stringify({ value: { ...value, ...harmful } });
        await memory.store.write('acme', [{ do: 'update', record: { layer, key, ...record, body }, revision }]);
      }
      const found = async () => (await memory.semantic.search(ALL, { text: 'whales sing in harbours', limit: 3 })).length;
      expect([await found(), await memory.upkeep.archiveHarmful({ tenant: 'acme' })]).toEqual([1, 2]);
      expect(await found()).toBe(0);
      expect(await memory.procedural.byFingerprint(ALL, 'f1')).toEqual([]);
      const reasons = (await listed(memory)).map(({ id, archived }) => [id, archived?.reason.split(':')[0]]);
      expect(Object.fromEntries(reasons)).toMatchObject({ [fact.id]: 'harmful', [named.id]: 'harmful', harmless: undefined });
      await memory.upkeep.restore({ tenant: 'acme' });
      expect([await memory.upkeep.archiveHarmful({ tenant: 'acme' }), await found()]).toEqual([0, 1]);
    });
  });
}

async function* recordsOf({ store }: Memory) {
  for (const layer of ['semantic', 'procedural'] as const)
    for await (const page of store.each({ tenant: 'acme' }, layer, { kinds: ['shows'] })) yield* page;
}
