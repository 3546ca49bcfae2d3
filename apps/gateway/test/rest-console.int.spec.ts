import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FakeController, FakeWorld, TOKEN } from './fake-controller.js';
import { bearer, restDoor } from './rest-door.js';
import { gatewayForFile } from './gateway.harness.js';

const { ask, send, settings } = restDoor();
const rig = gatewayForFile(async () => {
  // Does nothing if the console is already built.
  execFileSync(process.execPath, [fileURLToPath(new URL('../../console/build.mjs', import.meta.url))]);
  return { ...(await settings()), ETUDE_SANDBOX_INTERNAL_TOKEN: TOKEN };
});
let controller: FakeController;
beforeAll(async () => {
  controller = await new FakeController(rig.producer, new FakeWorld()).start();
});
afterAll(() => controller.kill());

it('sends the console to anybody, locked to its own files and out of frames', async () => {
  const page = await send('GET', '/console/tasks/t1', null, { authorization: '' });
  expect(page.status).toBe(200);
  expect(Object.fromEntries(page.headers)).toMatchObject({
    'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/) as string,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
  const [, script = ''] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(await page.text()) ?? [];
  const file = await send('GET', script, null);
  expect(file.headers.get('cache-control')).toContain('immutable');
  expect(await ask('GET', '/console/assets/..%2f..%2fpackage.json')).toMatchObject({ status: 404 });
  const dotted = await send('GET', '/console/operations/rollout.run', null);
  expect(dotted.headers.get('content-type')).toContain('text/html');
});

it('serves sandboxes: cells as events, files as they are', async () => {
  const { name } = (await ask('POST', '/v1/sandboxes', {})).body as { name: string };
  expect((await ask('GET', '/v1/sandboxes')).body['sandboxes']).toMatchObject([{ name }]);
  const events = await (await send('POST', `/v1/${name}:execute`, JSON.stringify({ code: 'print(1)' }))).text();
  expect(events).toMatch(/^id: \S+\ndata: \{/);
  const sent = await send('POST', `/v1/${name}/files:upload?path=a.bin`, 'bytes', { 'content-type': 'application/octet-stream' });
  expect(sent.status).toBe(200);
  const file = await send('GET', `/v1/${name}/files:download?path=a.bin`, null);
  expect(file.headers.get('content-disposition')).toBe('attachment');
  expect((await ask('POST', `/v1/${name}:close`)).body).toMatchObject({ state: 'SANDBOX_STATE_CLOSED' });
});

it('serves queues to operators only, and runs of consolidation', async () => {
  expect(await ask('GET', '/v1/queues')).toMatchObject({ status: 403 });
  expect((await ask('GET', '/v1/queues', undefined, bearer('ops'))).body['queues']).toContainEqual(
    expect.objectContaining({ name: 'rollout.run' }),
  );
  expect(await ask('GET', '/v1/tenants', undefined, bearer('ops'))).toMatchObject({ status: 200 });
  const run = (await ask('POST', '/v1/consolidationRuns', { dry_run: true })).body as { name: string };
  expect((await ask('GET', `/v1/${run.name}`)).body).toMatchObject({ name: run.name, dry_run: true });
});

it('filters tasks by labels in the query', async () => {
  const spec = { prompt: 'p', labels: { team: 'a' } };
  await ask('POST', '/v1/tasks', { spec });
  const labels = (text: string) => ask('GET', `/v1/tasks?labels=${encodeURIComponent(text)}`);
  expect((await labels('{"team": "a"}')).body['tasks']).toHaveLength(1);
  expect((await labels('{"team": "b"}')).body['tasks']).toHaveLength(0);
  expect(await labels('team')).toMatchObject({ status: 400 });
});
