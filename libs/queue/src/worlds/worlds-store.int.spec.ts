import { homeOf } from '@etude/domain/world/world';
import { expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { RedisWorlds } from './worlds-store.js';

const startQueue = queueForFile();

function start() {
  const { redis, keys } = startQueue();
  return { redis, keys, worlds: new RedisWorlds(redis, keys) };
}

const PLAN = { seed: 'moor', width: 16, height: 16 };
const CODER = { tenant: 'acme', agent: 'coder', user: null };
const LOOK = { tool: 'observe_location', radius: 5 } as const;
const REST = { tool: 'interact_with_agent', name: 'self', action: 'rest', message: '' } as const;

it('applies a move once, and gives a repeat its first outcome', async () => {
  const { worlds } = start();
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

it('keeps the failure of a move for repeats, and observes anew', async () => {
  const { worlds } = start();
  await worlds.create('acme', 'w', PLAN);
  const outside = { tool: 'move_to', x: -1, y: 0 } as const;
  const failure = await worlds.move(CODER, 'w', outside, 'm1');
  expect([failure.success, await worlds.move(CODER, 'w', outside, 'm1')]).toEqual([false, failure]);
  await worlds.move(CODER, 'w', { tool: 'move_to', ...homeOf(PLAN, '@guide-1') }, 'm2');
  const seen = await worlds.move(CODER, 'w', LOOK, 'm1');
  expect(seen).toMatchObject({ result: { position: homeOf(PLAN, '@guide-1'), nearby_agents: [{ name: '@guide-1', distance: 0 }] } });
  expect((await worlds.get('acme', 'w'))?.world.tick).toBe(2);
});

it('gives moves at the same time one order', async () => {
  const { worlds } = start();
  await worlds.create('acme', 'w', PLAN);
  const agents = Array.from({ length: 6 }, (_, i) => ({ ...CODER, agent: `a${i}` }));
  const moves = agents.flatMap((mover) => ['m1', 'm2', 'm1', 'm2'].map((id) => worlds.move(mover, 'w', REST, id)));
  expect((await Promise.all(moves)).every(({ success }) => success)).toBe(true);
  const { world } = (await worlds.get('acme', 'w')) ?? {};
  expect([world?.tick, world?.characters.length]).toEqual([12, 6]);
});

it('keeps a world for 30 days after its last move, and drops the name of one that expired', async () => {
  const { redis, keys, worlds } = start();
  await worlds.create('acme', 'w', PLAN);
  await redis.pexpire(keys.world('acme', 'w'), 5_000);
  await worlds.move(CODER, 'w', { tool: 'move_to', x: -1, y: 0 }, 'enters');
  expect(await redis.pttl(keys.world('acme', 'w'))).toBeGreaterThan(29 * 86_400_000);
  await redis.del(keys.world('acme', 'w'));
  expect(await worlds.list('acme', { limit: 1 })).toEqual([]);
  expect(await redis.exists(keys.worlds('acme'))).toBe(0);
});

it('starts a removed world again, with the same land and without old outcomes', async () => {
  const { worlds } = start();
  const move = { tool: 'move_to', ...homeOf(PLAN, '@guide-1') } as const;
  await worlds.create('acme', 'w', PLAN);
  const first = await worlds.move(CODER, 'w', move, 'm1');
  const before = await worlds.get('acme', 'w');
  await worlds.remove('acme', 'w');
  expect((await worlds.create('acme', 'w', PLAN)).world.characters).toEqual([]);
  expect(await worlds.move(CODER, 'w', move, 'm1')).toEqual(first);
  expect((await worlds.get('acme', 'w'))?.world).toEqual({ ...before?.world, characters: [expect.objectContaining({ name: 'coder' })] });
  expect((await worlds.move(CODER, 'w', REST, 'm2')).success).toBe(true);
});
