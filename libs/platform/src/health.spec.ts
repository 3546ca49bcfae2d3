import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { type HealthCheck, HealthChecks, startHealthServer } from './health.js';
import { counter, gauges } from './metrics.js';

let close = async () => {};
afterEach(() => close());

async function serve(checks: Record<string, HealthCheck>) {
  const health = new HealthChecks(checks);
  const server = await startHealthServer(health, '127.0.0.1', 0);
  close = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  const { port } = server.address() as AddressInfo;
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, text: await answer.text() };
  };
  return { get, health };
}

const works = () => Promise.resolve();

it('is ready when every check passes, shows their notes, and is not ready once it closes', async () => {
  const { get, health } = await serve({ a: works, b: () => Promise.resolve('the disk is slow') });
  expect(await get('/readyz')).toEqual({ status: 200, text: '{"ready":true,"checks":{"a":"ok","b":"ok: the disk is slow"}}' });
  health.close();
  expect((await get('/readyz')).status).toBe(503);
});

it('is alive when a check fails, and says what is wrong', async () => {
  const { get } = await serve({ a: works, redis: () => Promise.reject(new Error('Redis is gone')) });
  expect((await get('/healthz')).status).toBe(200);
  expect(await get('/readyz')).toEqual({ status: 503, text: '{"ready":false,"checks":{"a":"ok","redis":"Redis is gone"}}' });
});

it('shows metrics of the process and of the service', async () => {
  counter({ name: 'etude_test_total', help: 'Of this test' }).inc(3);
  const options = { help: 'Of this test', labels: ['queue'] };
  gauges({ ...options, name: 'etude_test_depth', collect: async () => [{ labels: { queue: 'a.b' }, value: 2 }] });
  gauges({ ...options, name: 'etude_test_lost', collect: () => Promise.reject(new Error('Redis is gone')) });
  const { get } = await serve({});
  const { text } = await get('/metrics');
  expect(text).toContain('etude_test_depth{queue="a.b"} 2');
  expect(text).not.toContain('etude_test_lost{');
  expect(text).toContain('etude_test_total 3');
  expect(text).toContain('process_resident_memory_bytes');
});
