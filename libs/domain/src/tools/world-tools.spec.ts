import { expect, it } from 'vitest';
import { FakeWorlds } from '../../test/fake-worlds.js';
import { never, refusal, startTools } from '../../test/tools-fixture.js';
import { isWorldRead, worldTools } from './world-tools.js';

async function start(named: string | null) {
  const worlds = new FakeWorlds();
  await worlds.create('acme', 'w', { seed: 'moor', width: 16, height: 16 });
  const tools = worldTools(worlds, () => named);
  const { contextOf } = startTools();
  const call = async (name: string, args: object = {}, more = {}) =>
    tools.find((tool) => tool.name === name)?.call(args, contextOf({}, more), never);
  return { worlds, tools, call };
}

it('acts in the world of the task, or in the named one', async () => {
  const { call, worlds } = await start(null);
  const none = { success: false, error: 'This task is in no world. Name one with the label world=NAME' };
  expect(await call('observe_location')).toEqual(none);
  const seen = await call('observe_location', { world: 'w', radius: 0 });
  expect(seen).toMatchObject({ success: true, result: { terrain: expect.any(String), climate: expect.any(String), stamina: 1 } });
  expect((await worlds.get('acme', 'w'))?.world.characters).toMatchObject([{ name: 'coder' }]);
  const { call: inWorld } = await start('w');
  expect(await inWorld('interact_with_agent', { name: 'self', action: 'rest' }, { user: 'ann' })).toMatchObject({ success: true });
  expect(await inWorld('gather_resource', { resource: 'gold' })).toMatchObject({ success: false });
});

it('moves once per call, and names wrong arguments', async () => {
  const { call, worlds } = await start('w');
  for (const callId of ['c1', 'c1']) await call('interact_with_agent', { name: 'self', action: 'rest' }, { callId });
  expect((await worlds.get('acme', 'w'))?.world.tick).toBe(1);
  expect(await call('move_to', { x: 1 })).toMatchObject(refusal('"y"'));
  expect(await call('interact_with_agent', { name: 'self', action: 'fly' })).toMatchObject({ success: false });
});

it('publishes four tools, of which one is a read', async () => {
  const { tools } = await start('w');
  expect(tools.map(({ name, readOnly }) => [name, readOnly, isWorldRead(name)])).toEqual([
    ['observe_location', true, true],
    ['move_to', false, false],
    ['gather_resource', false, false],
    ['interact_with_agent', false, false],
  ]);
  expect(Object.keys(tools[1]?.inputSchema['properties'] as object)).toEqual(['x', 'y', 'world']);
});
