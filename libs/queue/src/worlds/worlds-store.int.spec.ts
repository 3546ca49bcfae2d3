import { worldsConformance } from '@etude/domain/testing/worlds-conformance';
import { homeOf } from '@etude/domain/world/world';
import { expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { RedisWorlds } from './worlds-store.js';

const startQueue = queueForFile();

function start() {
  const { redis, keys } = startQueue();
  return { redis, keys, worlds: new RedisWorlds(redis, keys) };
}

worldsConformance(async () => start().worlds);

const PLAN = { seed: 'moor', width: 16, height: 16 };
const CODER = { tenant: 'acme', agent: 'coder', user: null };
const REST = { tool: 'interact_with_agent', name: 'self', action: 'rest', message: '' } as const;

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
