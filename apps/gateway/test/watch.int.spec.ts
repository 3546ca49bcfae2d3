import { TaskState, type TaskEvent } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { collect, GatewayRig, refusal, SPEC } from './gateway.harness.js';

const rig = new GatewayRig();
beforeAll(() => rig.start());
afterAll(() => rig.stop());

const submit = async () => (await rig.tasks().submitTask({ spec: SPEC })).name;
const attempts = (events: readonly TaskEvent[]) =>
  events.flatMap(({ event }) => (event.case === 'attemptStarted' ? [event.value.attempt] : []));
const attempt = (n: number) => ({ type: 'attempt_started', attempt: n }) as const;

/** Number of clients that Redis has subscribed to the wake channel of a task. */
async function watchers(name: string): Promise<number> {
  const { redis, keys } = rig.producer;
  const [, count] = (await redis.pubsub('NUMSUB', keys.wake('acme', name.slice('tasks/'.length)))) as [string, number];
  return count;
}

it('sends all events up to the finished task, and continues after every token without a missed or repeated event', async () => {
  const name = await submit();
  for (let n = 1; n <= 5; n += 1) await rig.emit('acme', name, [attempt(n)]);
  await rig.finish('acme', name);
  const all = await collect(rig.tasks().watchTask({ name }));
  expect(attempts(all)).toEqual([1, 2, 3, 4, 5]);
  expect(all.at(-1)?.event).toMatchObject({ case: 'finished', value: { task: { name, state: TaskState.SUCCEEDED } } });
  for (const [index, { resumeToken }] of all.entries()) {
    const rest = await collect(rig.tasks().watchTask({ name, resumeToken }));
    expect(rest.map((event) => event.resumeToken)).toEqual(all.slice(index + 1).map((event) => event.resumeToken));
  }
});

it('refuses a token of another task, and an invented token', async () => {
  const name = await submit();
  const [first] = await collect(rig.tasks().watchTask({ name: await submit() }), 1);
  for (const resumeToken of [first?.resumeToken ?? '', 'nonsense', Buffer.from(`${name.slice(6)}/1-1; DROP`).toString('base64url')]) {
    expect(await refusal(collect(rig.tasks().watchTask({ name, resumeToken })))).toMatchObject({
      status: status.INVALID_ARGUMENT,
      fields: ['resume_token'],
    });
  }
});

it('ends the subscription when the watcher leaves', async () => {
  const name = await submit();
  const leaving = new AbortController();
  const watching = collect(rig.tasks().watchTask({ name }, { signal: leaving.signal })).catch(() => 'left');
  await until(async () => (await watchers(name)) === 1, { what: 'the watch is subscribed' });
  leaving.abort();
  expect(await watching).toBe('left');
  await until(async () => (await watchers(name)) === 0, { what: 'the subscription ended' });
});

it('ends with UNAVAILABLE when the gateway closes, and continues at another gateway', async () => {
  const name = await submit();
  await rig.emit('acme', name, [attempt(1)]);
  const events: TaskEvent[] = [];
  const watching = (async () => {
    for await (const event of rig.tasks().watchTask({ name })) events.push(event);
  })();
  await until(() => attempts(events).includes(1), { what: 'the first attempt is seen' });
  const refused = refusal(watching);
  await rig.stopGateway();
  expect(await refused).toMatchObject({ status: status.UNAVAILABLE, code: 'SHUTTING_DOWN' });
  await rig.emit('acme', name, [attempt(2)]);
  await rig.start();
  await rig.emit('acme', name, [attempt(3)]);
  await rig.finish('acme', name);
  const rest = await until(
    () => collect(rig.tasks().watchTask({ name, resumeToken: events.at(-1)?.resumeToken ?? '' })).catch(() => null),
    { what: 'the new gateway answers' },
  );
  const whole = await collect(rig.tasks().watchTask({ name }));
  expect([...events, ...rest].map(({ resumeToken }) => resumeToken)).toEqual(whole.map(({ resumeToken }) => resumeToken));
  expect(attempts(whole)).toEqual([1, 2, 3]);
});
