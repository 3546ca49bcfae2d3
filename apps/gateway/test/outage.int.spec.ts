import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { service as Health } from 'grpc-health-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GatewayRig, refusal, SPEC } from './gateway.harness.js';

const rig = new GatewayRig();
beforeAll(async () => {
  await rig.startRedis();
  await rig.redis.pause();
  await rig.start();
});
afterAll(() => rig.stop());

interface Check {
  readonly path: string;
  readonly requestSerialize: (value: object) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => { readonly status: string };
}

async function health(service: string): Promise<string> {
  const { Check: check } = Health as unknown as Record<'Check', Check>;
  return check.responseDeserialize(await rig.callRaw(check.path, check.requestSerialize({ service }))).status;
}

it('starts without Redis, reports NOT_SERVING, and recovers when Redis is back', async () => {
  expect(await health(Tasks.typeName)).toBe('NOT_SERVING');
  const refused = await refusal(rig.tasks().submitTask({ spec: SPEC }));
  expect(refused).toMatchObject({ status: status.UNAVAILABLE, code: 'QUEUE_UNAVAILABLE' });
  expect(refused.retryAfterMs).toBeGreaterThan(0);
  expect(refused.message).toContain('Redis');
  await rig.redis.resume();
  await until(async () => (await health(Tasks.typeName)) === 'SERVING', { what: 'health is SERVING' });
  expect((await rig.tasks().submitTask({ spec: SPEC })).name).toMatch(/^tasks\//);
});

it('serves memory and refuses bad input while Redis is unreachable', async () => {
  await rig.redis.pause();
  expect((await refusal(rig.tasks().submitTask({ spec: { ...SPEC, prompt: '' } }))).status).toBe(status.INVALID_ARGUMENT);
  await until(async () => (await health('')) === 'NOT_SERVING', { what: 'health is NOT_SERVING' });
  expect(await health('etude.v1.Memory')).toBe('SERVING');
  await rig.redis.resume();
  await until(async () => (await health('')) === 'SERVING', { what: 'health is SERVING' });
});
