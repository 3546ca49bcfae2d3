import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { LearningState, StopReason, type TaskEvent, TaskState, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Usage } from '@etude/contracts/task';
import { openLearning } from '@etude/queue/tasks/journal';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { NullValue } from '@bufbuild/protobuf/wkt';
import { collect, gatewayForFile, pagesOf, refusal, SPEC, type SpecInit } from './gateway.harness.js';

const rig = gatewayForFile();

const submit = async () => (await rig.tasks().submitTask({ spec: SPEC })).name;
const useStrategy = (strategy: string) =>
  rig.client(Agents, 'rev').updateAgent({ agent: { name: 'agents/acting', strategy }, updateMask: { paths: ['strategy'] } });
const submitActing = (spec: object = {}, requestId = '') =>
  rig.tasks().submitTask({ spec: { ...SPEC, agent: 'acting', ...spec }, requestId });
const attempts = (events: readonly TaskEvent[]) =>
  events.flatMap(({ event }) => (event.case === 'attemptStarted' ? [event.value.attempt] : []));
const attempt = (n: number) => ({ type: 'attempt_started', attempt: n }) as const;

/** Number of clients that Redis has subscribed to the wake channel of a task. */
async function watchers(name: string): Promise<number> {
  const { redis, keys } = rig.producer;
  const [, count] = (await redis.pubsub('NUMSUB', keys.wake('acme', name.slice('tasks/'.length)))) as [string, number];
  return count;
}

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

describe('submit', () => {
  it('returns the queued task with its defaults', async () => {
    const task = await rig.tasks().submitTask({ spec: SPEC });
    expect(task).toMatchObject({
      state: TaskState.QUEUED,
      stopReason: StopReason.UNSPECIFIED,
      cancelRequested: false,
      etag: expect.stringMatching(/^\d+$/) as string,
    });
    expect(task.name).toMatch(/^tasks\/t[0-9a-z]+$/);
    expect(task.spec).toMatchObject({ agent: 'default', strategy: 'attempts', limits: { attempts: 4, wallTime: { seconds: 600n } } });
    expect((await rig.tasks().submitTask({ spec: { prompt: 'p' } })).spec?.evaluator?.kind.case).toBe('none');
  });

  it('has the strategy of its agent when it was accepted', async () => {
    await useStrategy('codeact');
    const first = await submitActing({}, 'acting-1');
    expect(first.spec?.strategy).toBe('codeact');
    expect((await submitActing({ strategy: 'attempts' })).spec?.strategy).toBe('attempts');
    await useStrategy('attempts');
    expect((await submitActing({}, 'acting-1')).name).toBe(first.name);
  });

  it('stores the spec without changes', async () => {
    const spec: SpecInit = {
      agent: 'solver',
      user: 'u1',
      prompt: 'Zeichen: äöü 😀',
      files: [{ path: 'data/in.bin', content: Buffer.from([0, 255, 10]) }],
      labels: { 'a.b': 'x', B: '' },
      untrusted: true,
      evaluator: {
        kind: {
          case: 'functionCases',
          value: {
            entryPoint: 'f',
            cases: [{ kwargs: { k: [null, true] }, expected: { kind: { case: 'nullValue', value: NullValue.NULL_VALUE } } }],
          },
        },
      },
      limits: { attempts: 2, sandbox: { memoryMib: 64, cpuTime: { seconds: 1n, nanos: 500_000_000 } } },
    };
    const { name } = await rig.tasks().submitTask({ spec });
    expect((await rig.tasks().getTask({ name })).spec).toMatchObject(spec);
  });
});

describe('get', () => {
  it('shows a finished task with its result', async () => {
    const { name } = await rig.tasks().submitTask({ spec: SPEC });
    await rig.finish('acme', name);
    const task = await rig.tasks().getTask({ name });
    expect(task).toMatchObject({ state: TaskState.SUCCEEDED, stopReason: StopReason.SOLVED, usage: { modelCalls: 2 } });
    expect(task.result).toMatchObject({ verdict: Verdict.AC, skill: 'skills/add/versions/2', scripted: true });
    expect(task.endTime).toBeDefined();
  });

  it('shows no verdict where nobody judged', async () => {
    const { name } = await rig.tasks().submitTask({ spec: SPEC });
    const judged = { attempt: 1, verdict: 'AC', reason: 'ran to its end', casesPassed: 0, casesTotal: 0, skill: null } as const;
    await rig.emit('acme', name, [{ type: 'attempt_finished', ...judged }]);
    await rig.finish('acme', name, 0);
    expect((await rig.tasks().getTask({ name })).result).toMatchObject({ verdict: Verdict.UNSPECIFIED, output: '3' });
    const events = await collect(rig.tasks().watchTask({ name }));
    const told = events.flatMap(({ event }) => (event.case === 'attemptFinished' ? [event.value.verdict] : []));
    expect(told).toEqual([Verdict.UNSPECIFIED]);
  });
});

it('list pages through every task once, newest first', async () => {
  const made: string[] = [];
  for (let n = 0; n < 7; n += 1) made.push((await rig.tasks('globex').submitTask({ spec: { ...SPEC, labels: { list: 'pages' } } })).name);
  const pages = await pagesOf((pageToken) => rig.tasks('globex').listTasks({ pageSize: 3, pageToken, labels: { list: 'pages' } }));
  expect(pages.flatMap(({ tasks }) => tasks.map(({ name }) => name))).toEqual(made.toReversed());
});

it('cancel asks a running task to stop, also if repeated', async () => {
  const { name } = await rig.tasks().submitTask({ spec: SPEC });
  await rig.emit('acme', name, [{ type: 'attempt_started', attempt: 1 }]);
  await rig.tasks().cancelTask({ name, requestId: 'c1' });
  expect(await rig.tasks().cancelTask({ name, requestId: 'c1' })).toMatchObject({ state: TaskState.RUNNING, cancelRequested: true });
});

describe('wait', () => {
  it('returns at the verdict, or after learning where that is asked for', async () => {
    const { name } = await rig.tasks().submitTask({ spec: SPEC });
    const taskId = name.slice('tasks/'.length);
    const learned = rig.tasks().waitTask({ name, timeout: { seconds: 60n }, learning: true });
    await rig.finish('acme', name, 1, []);
    const pending = { state: TaskState.SUCCEEDED, learning: { state: LearningState.PENDING } };
    expect(await rig.tasks().waitTask({ name })).toMatchObject(pending);
    expect(await rig.tasks().waitTask({ name, timeout: { nanos: 1_000_000 }, learning: true })).toMatchObject(pending);
    const { redis, keys } = rig.producer;
    const journal = await openLearning(redis, keys, { tenant: 'acme', taskId, rolloutId: `${taskId}-r1` });
    await journal?.append({ key: 't.lessons', value: null, usage: Usage.parse({ modelCalls: 1 }) }, []);
    await journal?.finish({ state: 'done', error: null });
    expect(await learned).toMatchObject({ learning: { state: LearningState.DONE, usage: { modelCalls: 1 } } });
  });

  it.each([{ seconds: -1n }, { seconds: 3_601n }])('refuses a timeout out of range: %o', async (timeout) => {
    const { name } = await rig.tasks().submitTask({ spec: SPEC });
    expect(await refusal(rig.tasks().waitTask({ name, timeout }))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['timeout'] });
  });
});

const ask = async () => {
  const name = await submit();
  const waiting = rig.tasks().waitTask({ name, timeout: { seconds: 60n } });
  await rig.ask('acme', name, { key: 'a1.s1.t1', text: 'Which year?', deadlineAt: 4_000_000_000_000 });
  expect(await waiting).toMatchObject({ state: TaskState.INPUT_REQUIRED, question: { key: 'a1.s1.t1', text: 'Which year?' } });
  return name;
};

it.each([
  ['an empty answer', { text: '' }, 'text'],
  ['an answer that is too long', { text: 'x'.repeat(20_001) }, 'text'],
  ['the key of another question', { text: 'x', key: 'a9' }, 'key'],
])('a question refuses %s', async (_what, answer, field) => {
  const name = await ask();
  expect(await refusal(rig.tasks().answerTask({ name, ...answer }))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
});

it('sends text of the model between stored events, to those who ask for it', async () => {
  const name = await submit();
  const { redis, keys } = rig.producer;
  const channel = keys.text('acme', name.slice('tasks/'.length));
  const [watching, plain] = [collect(rig.tasks().watchTask({ name, text: true })), collect(rig.tasks().watchTask({ name }))];
  await until(async () => (await watchers(name)) === 1 && (await redis.publish(channel, '{"step":"a1.draft","text":"I think"}')) === 1);
  await rig.finish('acme', name);
  const events = await watching;
  const at = events.findIndex(({ event }) => event.case === 'modelText');
  expect(events[at]?.event.value).toMatchObject({ step: 'a1.draft', text: 'I think' });
  expect(events[at]?.resumeToken).toBe(events[at - 1]?.resumeToken ?? '');
  expect((await plain).map(({ resumeToken }) => resumeToken)).toEqual(events.toSpliced(at, 1).map(({ resumeToken }) => resumeToken));
});
