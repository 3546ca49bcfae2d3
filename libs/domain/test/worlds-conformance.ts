import { describe, expect, it } from 'vitest';
import type { Worlds } from '../src/ports/worlds.js';
import { homeOf } from '../src/world/world.js';

const PLAN = { seed: 'moor', width: 16, height: 16 };
const CODER = { tenant: 'acme', agent: 'coder', user: null };
const LOOK = { tool: 'observe_location', radius: 5 } as const;
const REST = { tool: 'interact_with_agent', name: 'self', action: 'rest', message: '' } as const;

/** The promises of every `Worlds`. `make` returns an empty one each time. */
export function worldsConformance(make: () => Promise<Worlds>): void {
  describe('worlds', () => {
    it('are made once per plan, listed by name, and removed', async () => {
      const worlds = await make();
      for (const name of ['b', 'a', 'c']) await worlds.create('acme', name, PLAN);
      await worlds.move(CODER, 'a', REST, 'm1');
      expect((await worlds.create('acme', 'a', PLAN)).world.tick).toBe(1);
      await expect(worlds.create('acme', 'a', { ...PLAN, seed: 'other' })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
      const named = async (page: { limit: number; after?: string }) => (await worlds.list('acme', page)).map(({ name }) => name);
      expect([await named({ limit: 2 }), await named({ limit: 2, after: 'b' })]).toEqual([['a', 'b'], ['c']]);
      expect([await worlds.list('other', { limit: 9 }), await worlds.get('other', 'a')]).toEqual([[], null]);
      expect([await worlds.remove('acme', 'b'), await worlds.remove('acme', 'b'), await named({ limit: 9 })]).toEqual([
        true,
        false,
        ['a', 'c'],
      ]);
      await expect(worlds.move(CODER, 'b', LOOK, 'm')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    });

    it('apply a move once, and give a repeat its first outcome', async () => {
      const worlds = await make();
      await worlds.create('acme', 'w', PLAN);
      const move = { tool: 'move_to', ...homeOf(PLAN, '@guide-1') } as const;
      const first = await worlds.move(CODER, 'w', move, 'm1');
      expect(first).toMatchObject({ success: true, result: { new_position: homeOf(PLAN, '@guide-1') } });
      await worlds.move(CODER, 'w', { tool: 'move_to', ...homeOf(PLAN, '@innkeeper-1') }, 'm2');
      const before = await worlds.get('acme', 'w');
      expect(await worlds.move(CODER, 'w', move, 'm1')).toEqual(first);
      expect(await worlds.get('acme', 'w')).toEqual(before);
      await expect(worlds.move(CODER, 'w', REST, 'm1')).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
      expect(await worlds.move({ ...CODER, user: 'ann' }, 'w', REST, 'm1')).toMatchObject({ success: true });
      expect((await worlds.get('acme', 'w'))?.world.characters.map(({ name }) => name).toSorted()).toEqual(['coder', 'coder/ann']);
    });

    it('keep the failure of a move for repeats, and observe anew', async () => {
      const worlds = await make();
      await worlds.create('acme', 'w', PLAN);
      const outside = { tool: 'move_to', x: -1, y: 0 } as const;
      const failure = await worlds.move(CODER, 'w', outside, 'm1');
      expect([failure.success, await worlds.move(CODER, 'w', outside, 'm1')]).toEqual([false, failure]);
      await worlds.move(CODER, 'w', { tool: 'move_to', ...homeOf(PLAN, '@guide-1') }, 'm2');
      const seen = await worlds.move(CODER, 'w', LOOK, 'm1');
      expect(seen).toMatchObject({ result: { position: homeOf(PLAN, '@guide-1'), nearby_agents: [{ name: '@guide-1', distance: 0 }] } });
      expect((await worlds.get('acme', 'w'))?.world.tick).toBe(2);
    });

    it('give moves at the same time one order', async () => {
      const worlds = await make();
      await worlds.create('acme', 'w', PLAN);
      const agents = Array.from({ length: 6 }, (_, i) => ({ ...CODER, agent: `a${i}` }));
      const moves = agents.flatMap((mover) => ['m1', 'm2', 'm1', 'm2'].map((id) => worlds.move(mover, 'w', REST, id)));
      expect((await Promise.all(moves)).every(({ success }) => success)).toBe(true);
      const { world } = (await worlds.get('acme', 'w')) ?? {};
      expect([world?.tick, world?.characters.length]).toEqual([12, 6]);
    });
  });
}
