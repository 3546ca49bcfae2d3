import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { RolloutRun } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { Client, credentials, status } from '@grpc/grpc-js';
import { service as Health } from 'grpc-health-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { collect, GatewayRig, refusal, SPEC } from './gateway.harness.js';

const rig = new GatewayRig();
beforeAll(async () => {
  await rig.startRedis();
  await rig.redis.pause();
  await rig.start();
});
afterAll(() => rig.stop());

function health(service: string): Promise<string> {
  const client = new Client(rig.address, credentials.createInsecure());
  const { Check: check } = Health as unknown as Record<
    'Check',
    { path: string; requestSerialize: (value: object) => Buffer; responseDeserialize: (bytes: Buffer) => { status: string } }
  >;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(check.path, check.requestSerialize, check.responseDeserialize, { service }, (error, answer) => {
      client.close();
      if (error || !answer) reject(error ?? new Error('no answer'));
      else resolve(answer.status);
    });
  });
}

it('starts without Redis, says so, and heals by itself', async () => {
  expect(await health(Tasks.typeName)).toBe('NOT_SERVING');
  const refused = await refusal(rig.tasks().submitTask({ spec: SPEC }));
  expect(refused).toMatchObject({ status: status.UNAVAILABLE, code: 'QUEUE_UNAVAILABLE' });
  expect(refused.retryAfterMs).toBeGreaterThan(0);
  expect(refused.message).toContain('Redis');
  await rig.redis.resume();
  await until(async () => (await health(Tasks.typeName)) === 'SERVING', { what: 'health is SERVING' });
  expect((await rig.tasks().submitTask({ spec: SPEC })).name).toMatch(/^tasks\//);
});

it('answers what needs no Redis while it is gone, and refuses bad input as ever', async () => {
  await rig.redis.pause();
  expect((await refusal(rig.tasks().submitTask({ spec: { ...SPEC, prompt: '' } }))).status).toBe(status.INVALID_ARGUMENT);
  await until(async () => (await health('')) === 'NOT_SERVING', { what: 'health is NOT_SERVING' });
  expect(await health('etude.v1.Memory')).toBe('SERVING');
  await rig.redis.resume();
  await until(async () => (await health('')) === 'SERVING', { what: 'health is SERVING' });
});

it('misses and repeats nothing for a watcher that resumes after an outage', async () => {
  const durable = new GatewayRig();
  await durable.startRedis({ durable: true });
  await durable.start();
  try {
    const { name } = await durable.tasks().submitTask({ spec: SPEC });
    const seen: string[] = [];
    const watching = until(
      async () => {
        try {
          for await (const { resumeToken } of durable.tasks().watchTask({ name, resumeToken: seen.at(-1) ?? '' })) seen.push(resumeToken);
          return true;
        } catch {
          return false; // UNAVAILABLE: come again behind the last token
        }
      },
      { what: 'the watch ends' },
    );
    await until(() => seen.length > 0, { what: 'the first event is seen' });
    await durable.redis.pause();
    await durable.redis.resume();
    await until(
      () =>
        durable.emit('acme', name, [{ type: 'attempt_started', attempt: 1 }]).then(
          () => true,
          () => false,
        ),
      { what: 'the worker goes on' },
    );
    await durable.finish('acme', name);
    await watching;
    expect(seen).toEqual((await collect(durable.tasks().watchTask({ name }))).map(({ resumeToken }) => resumeToken));
  } finally {
    await durable.stop();
  }
});

it('adds the job of a task that was recorded and never queued', async () => {
  const { redis, keys } = rig.producer;
  const { name } = await rig.tasks().submitTask({ spec: SPEC });
  const taskId = name.slice('tasks/'.length);
  await rig.producer.queue(RolloutRun.name).obliterate({ force: true });
  await redis.zadd(keys.rolloutOutbox, 1, `acme/${taskId}-r1`);
  const job = await until(() => rig.producer.queue(RolloutRun.name).getJob(`${taskId}-r1`), { what: 'the reconciler added the job' });
  expect(job.data).toMatchObject({ tenant: 'acme', taskId });
});
