import { expect, it } from 'vitest';
import { never, startTools } from '../../test/tools-fixture.js';
import { applyMove } from '../world/apply-move.js';
import { newWorld } from '../world/world.js';
import { type MoveInWorld, worldTools } from './world-tools.js';

function start(named: string | null) {
  const world = newWorld({ seed: 'moor', width: 16, height: 16 });
  const moves: unknown[] = [];
  const move: MoveInWorld = async ({ agent, user }, name, one, moveId) => {
    moves.push([agent, user, name, one.tool, moveId]);
    return applyMove(world, agent, one).outcome;
  };
  const tools = worldTools({ move, world: named });
  const { contextOf } = startTools();
  const call = async (name: string, args: object = {}, more = {}) =>
    tools.find((tool) => tool.name === name)?.call(args, contextOf({}, more), never);
  return { moves, tools, call };
}

it('acts in the world of the task, or in the named one', async () => {
  const { call } = start(null);
  const none = { success: false, error: 'This task is in no world. Name one with the label world=NAME' };
  expect(await call('observe_location')).toEqual(none);
  const seen = await call('observe_location', { world: 'w', radius: 0 });
  expect(seen).toMatchObject({ success: true, result: { terrain: expect.any(String), climate: expect.any(String), stamina: 1 } });
  const { call: inWorld, moves } = start('w');
  const rest = { name: 'self', action: 'rest' };
  expect(await inWorld('interact_with_agent', rest, { user: 'ann', callId: 'c1' })).toMatchObject({ success: true });
  expect(await inWorld('gather_resource', { resource: 'gold' })).toMatchObject({ success: false });
  expect(moves[0]).toEqual(['coder', 'ann', 'w', 'interact_with_agent', 'c1']);
});

it('publishes four tools, of which one is a read', () => {
  const { tools } = start('w');
  expect(tools.map(({ name, readOnly }) => [name, readOnly])).toEqual([
    ['observe_location', true],
    ['move_to', false],
    ['gather_resource', false],
    ['interact_with_agent', false],
  ]);
  expect(Object.keys(tools[1]?.inputSchema['properties'] as object)).toEqual(['x', 'y', 'world']);
});
