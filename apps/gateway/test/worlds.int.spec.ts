import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, type KeyName, pagesOf, refusal } from './gateway.harness.js';

const rig = gatewayForFile();
const worlds = (key: KeyName = 'acme') => rig.client(Worlds, key);
const submit = (key: KeyName, world: string) => rig.tasks(key).submitTask({ spec: { prompt: 'Look.', labels: { world } } });
const REST = { tool: 'interact_with_agent', arguments: { name: 'self', action: 'rest' }, agent: 'coder' };

describe('a world', () => {
  it('is made once, drawn with its agents, and deleted', async () => {
    const name = 'worlds/drawn';
    const made = await worlds().createWorld({ name });
    expect(made).toMatchObject({ name, seed: 'drawn', width: 32, height: 32, tick: 0, agents: [] });
    await worlds().moveInWorld({ ...REST, name, user: 'ann' });
    const seen = await worlds().getWorld({ name });
    expect(seen).toMatchObject({ tick: 1, agents: [{ name: 'coder/ann', stamina: 1, inventory: {} }] });
    expect([seen.rows.length, new Set(seen.rows.map((row) => row.length))]).toEqual([32, new Set([32])]);
    expect(seen.rows[seen.agents[0]?.y ?? 0]?.[seen.agents[0]?.x ?? 0]).toBe('@');
    expect(await worlds().createWorld({ name })).toMatchObject({ tick: 1 });
    expect((await refusal(worlds().createWorld({ name, width: 16 }))).code).toBe('ALREADY_EXISTS');
    await worlds().deleteWorld({ name });
    expect(await refusal(worlds().deleteWorld({ name }))).toMatchObject({ status: status.NOT_FOUND, message: 'There is no worlds/drawn.' });
  });

  it('is listed page by page, within its tenant', async () => {
    for (const one of ['l2', 'l1']) await worlds('globex').createWorld({ name: `worlds/${one}`, width: 8, height: 8 });
    const pages = await pagesOf((pageToken) => worlds('globex').listWorlds({ pageSize: 1, pageToken }));
    expect(pages.map((page) => page.worlds.map(({ name, rows }) => [name, rows]))).toEqual([[['worlds/l1', []]], [['worlds/l2', []]]]);
    expect((await refusal(worlds().getWorld({ name: 'worlds/l1' }))).code).toBe('NOT_FOUND');
    expect((await refusal(worlds().moveInWorld({ ...REST, name: 'worlds/l1' }))).code).toBe('NOT_FOUND');
  });

  it('takes moves, each request once, and answers failures', async () => {
    const name = 'worlds/moved';
    await worlds().createWorld({ name, seed: 'moor' });
    const first = await worlds().moveInWorld({ ...REST, name, requestId: 'r1' });
    expect(await worlds().moveInWorld({ ...REST, name, requestId: 'r1' })).toEqual(first);
    expect(await worlds().getWorld({ name })).toMatchObject({ tick: 1 });
    const outside = { name, agent: 'coder', tool: 'move_to', arguments: { x: 99, y: 0 } };
    expect((await refusal(worlds().moveInWorld({ ...outside, requestId: 'r1' }))).code).toBe('ALREADY_EXISTS');
    expect(await worlds().moveInWorld(outside)).toMatchObject({ success: false, error: expect.stringContaining('outside of the world') });
    expect(await worlds().moveInWorld({ ...outside, arguments: { x: 1 } })).toMatchObject({ error: expect.stringContaining('"y"') });
  });

  it('is entered by its tools, which are called by name and not listed', async () => {
    await worlds().createWorld({ name: 'worlds/tools', seed: 'moor' });
    const look = { tool: 'observe_location', agent: 'coder' };
    expect(await rig.client(Tools).callTool(look)).toMatchObject({ success: false, error: expect.stringContaining('world=NAME') });
    const seen = await rig.client(Tools).callTool({ ...look, arguments: { world: 'tools' } });
    expect(seen).toMatchObject({ success: true, result: { stamina: 1, inventory: {} } });
    const missing = await rig.client(Tools).callTool({ ...look, arguments: { world: 'none' } });
    expect(missing).toMatchObject({ success: false, error: 'there is no world "none"; list the worlds to see which exist' });
    expect((await rig.client(Tools).listTools({ agent: 'coder' })).tools.map(({ name }) => name)).not.toContain('observe_location');
  });

  it('must exist in its tenant for a task that its label names', async () => {
    await worlds('globex').createWorld({ name: 'worlds/labelled' });
    expect(await submit('globex', 'labelled')).toMatchObject({ spec: { labels: { world: 'labelled' } } });
    for (const world of ['labelled', 'no:name'])
      expect(await refusal(submit('acme', world))).toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining(`"${world}"`) });
  });

  it.each([
    ['a wrong name', () => worlds().createWorld({ name: 'moor' }), 'name'],
    ['a size out of bounds', () => worlds().createWorld({ name: 'worlds/x', width: 129 }), 'width'],
    ['an unknown move', () => worlds().moveInWorld({ ...REST, name: 'worlds/x', tool: 'fly' }), 'tool'],
    ['no agent', () => worlds().moveInWorld({ ...REST, name: 'worlds/x', agent: '' }), 'agent'],
  ])('refuses %s', async (_what, call, field) => {
    expect(await refusal(call())).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
  });
});
