import { once } from 'node:events';
import { createServer } from 'node:net';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { freePort } from '@etude/test-support/ports';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gatewayConfig } from '../src/config/gateway-config.js';
import { startGateway } from '../src/gateway.js';
import { collect, GatewayRig, refusal, SPEC, writeKeys } from './gateway.harness.js';
import { TEA } from './skill-drafts.js';
import { builtMains } from './skill-workers.js';

const rig = new GatewayRig();
/** The test's Redis forgets everything when it ends. */
const RISK = 'ok: appendonly is no, not yes; appendfsync is everysec, not always';
let main = '';
beforeAll(async () => {
  [main] = await builtMains('gateway');
  await rig.startRedis();
  rig.port = await freePort();
  writeKeys(rig.keysPath);
});
afterAll(() => rig.stop());

/** Starts a gateway in this process. */
const startHere = async (more: Record<string, string | undefined>) =>
  startGateway(gatewayConfig.parse({ ...rig.environment(), ...more }), async () => new LexicalEmbedder());

const start = (more: Record<string, string> = {}): Promise<TestProcess> => startProcess({ args: [main], env: rig.environment(more) });

it('refuses to start without keys and without an anonymous tenant, and names the settings', async () => {
  await expect(startHere({ ETUDE_AUTH_KEYS_PATH: undefined })).rejects.toThrow(/ETUDE_AUTH_KEYS_PATH.*ETUDE_AUTH_ANONYMOUS_TENANT/);
});

it('refuses an anonymous tenant on an address other than loopback', async () => {
  const open = { ETUDE_AUTH_ANONYMOUS_TENANT: 'local', ETUDE_GRPC_HOST: '0.0.0.0' };
  await expect(startHere(open)).rejects.toThrow('ETUDE_GRPC_HOST');
});

it.each(['ETUDE_GRPC_PORT', 'ETUDE_HTTP_PORT'])('names a taken port and its setting %s', async (setting) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const started = startHere({ [setting]: String(port) });
  await expect(started).rejects.toThrow(setting);
  await expect(started).rejects.toThrow(String(port));
  taken.close();
});

it('loses no accepted task when it is killed', async () => {
  const gateway = await start();
  const names = await Promise.all(Array.from({ length: 20 }, async () => (await rig.tasks().submitTask({ spec: SPEC })).name));
  await gateway.kill();
  const next = await start();
  for (const name of names) expect(await collect(rig.tasks().watchTask({ name }), 1)).toHaveLength(1);
  expect(await next.stop()).toBe(0);
});

it('shows a change whose gateway was killed before it wrote the outcome', async () => {
  const gateway = await start();
  const [skills, agents] = [rig.client(Skills, 'rev'), rig.client(Agents, 'rev')];
  const agent = { name: 'agents/solver', proceduralMemorySettings: { enabled: true } };
  await agents.updateAgent({ agent, updateMask: { paths: ['procedural_memory_settings.enabled'] } });
  const left = refusal(skills.registerSkill({ skill: TEA, wait: true }));
  const isStored = () => skills.getSkill({ name: 'skills/make_tea', agent: 'solver' }).then(Boolean, () => false);
  await until(isStored, { what: 'the skill is stored' });
  await gateway.kill();
  await left;
  const next = await start();
  const { entries } = await rig.client(Queues, 'rev').listAudit({ pageSize: 1 });
  expect(entries).toMatchObject([{ actor: 'rev', call: 'etude.v1.Skills/RegisterSkill', target: 'make_tea', outcome: 'UNKNOWN' }]);
  expect(await next.stop()).toBe(0);
});

it('reports over HTTP whether it is ready, and which check fails', async () => {
  const httpPort = await freePort();
  const gateway = await start({ ETUDE_HTTP_PORT: String(httpPort) });
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${httpPort}${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  expect(await get('/healthz')).toMatchObject({ status: 200 });
  expect(JSON.parse((await get('/readyz')).body)).toEqual({ ready: true, checks: { redis: RISK, memory: 'ok' } });
  await rig.tasks().listTasks({});
  expect((await get('/metrics')).body).toContain('etude_grpc_calls_total{method="/etude.v1.Tasks/ListTasks",code="OK"}');
  await rig.redis.pause();
  const unready = await get('/readyz');
  expect(unready.status).toBe(503);
  expect((JSON.parse(unready.body) as { checks: { redis: string } }).checks.redis).toContain('Redis');
  await rig.redis.resume();
  await until(async () => (await get('/readyz')).status === 200, { what: 'it is ready again' });
  expect(await gateway.stop()).toBe(0);
});

it('writes no key, prompt or code into its log', async () => {
  const gateway = await start({ ETUDE_LOG_LEVEL: 'trace' });
  await rig.tasks().submitTask({ spec: { ...SPEC, prompt: 'prompt-that-is-secret', referenceSolution: 'code-that-is-secret' } });
  await refusal(rig.tasks().submitTask({ spec: { ...SPEC, prompt: 'prompt-that-is-secret', priority: 99 } }));
  await gateway.stop();
  expect(gateway.output()).not.toMatch(/that-is-secret|key-of-acme/);
});
