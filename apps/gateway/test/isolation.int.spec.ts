import { Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { collect, gatewayForFile, refusal, SPEC } from './gateway.harness.js';

const rig = gatewayForFile();

it('shows a tenant no task of another tenant, and changes none', async () => {
  const mine = await rig.tasks('acme').submitTask({ spec: SPEC, requestId: 'r1' });
  const theirs = rig.tasks('globex');
  const { name } = mine;
  const calls = [
    () => theirs.getTask({ name }),
    () => theirs.cancelTask({ name }),
    () => theirs.waitTask({ name, timeout: { nanos: 1_000_000 } }),
    () => collect(theirs.watchTask({ name }), 1),
  ];
  for (const call of calls) expect((await refusal(call())).status).toBe(status.NOT_FOUND);
  const other = await theirs.submitTask({ spec: { ...SPEC, prompt: 'Another prompt.' }, requestId: 'r1' });
  expect(other.name).not.toBe(name);
  expect((await theirs.listTasks({})).tasks.map((task) => task.name)).toEqual([other.name]);
  expect((await rig.tasks('acme').listTasks({})).tasks.map((task) => task.name)).toEqual([name]);
  expect((await rig.tasks('acme').submitTask({ spec: SPEC, requestId: 'r1' })).name).toBe(name);
  expect(await rig.tasks('acme').getTask({ name })).toMatchObject({ state: mine.state, cancelRequested: false });
});

it('finds no consolidation run of another tenant', async () => {
  const { name } = await rig.client(Consolidation, 'acme').runConsolidation({});
  expect((await refusal(rig.client(Consolidation, 'globex').getConsolidationRun({ name }))).status).toBe(status.NOT_FOUND);
});

it('takes no page token of another tenant', async () => {
  for (let n = 0; n < 2; n += 1) await rig.tasks('acme').submitTask({ spec: SPEC });
  const { nextPageToken } = await rig.tasks('acme').listTasks({ pageSize: 1 });
  expect(await refusal(rig.tasks('globex').listTasks({ pageSize: 1, pageToken: nextPageToken }))).toMatchObject({
    status: status.INVALID_ARGUMENT,
    fields: ['page_token'],
  });
});
