import { AsyncLocalStorage } from 'node:async_hooks';
import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { EtudeError } from '@etude/contracts/errors';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import type { Tracing } from '@etude/contracts/tracing';
import { until } from '@etude/test-support/until';
import { expect, it } from 'vitest';
import { Authenticator, type CallContext, waitMs } from './caller.js';
import { Calls, streamSpan } from './calls.js';
import { localClient } from './local-client.js';

async function* watch() {
  yield {};
  await Promise.resolve();
}

/** Calls whose handlers wait until a test ends them with or without an error. */
function served({ perTenantMax = 2 } = {}) {
  const ends: Array<(error?: unknown) => void> = [];
  const contexts: CallContext[] = [];
  const logged: object[] = [];
  const log = (details: object) => void logged.push(details);
  const shutdown = new AbortController();
  const authenticator = new Authenticator(null, 'local');
  const calls = new Calls({ authenticator, shutdown: shutdown.signal, perTenantMax, log: { warn: log, error: log } });
  const wait = (_request: object, context: CallContext) =>
    new Promise<object>((resolve, reject) => {
      contexts.push(context);
      ends.push((error) => (error === undefined ? resolve({}) : reject(error)));
    });
  const unary = Object.fromEntries(Tasks.methods.map(({ localName }) => [localName, wait]));
  calls.serve(Tasks, { ...unary, watchTask: watch }, {});
  /** Resolves once so many handlers wait. */
  const waiting = (count = 1) => until(() => ends.length >= count);
  return { calls, tasks: localClient(calls, Tasks), ends, contexts, logged, shutdown, waiting };
}

const refused = { code: 'TOO_MANY_CALLS', details: { retryAfterMs: 1_000 } };
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'OK',
    (error: unknown) => (error as EtudeError).code,
  );

it('counts a call until its work ends, even if its caller has left', async () => {
  const { tasks, ends, contexts, waiting } = served({ perTenantMax: 1 });
  const left = new AbortController();
  const call = codeOf(tasks.getTask({}, { signal: left.signal }));
  await waiting();
  left.abort();
  expect(await call).toBe('CANCELLED');
  expect(contexts[0]?.signal.reason).toMatchObject({ code: 'CANCELLED' });
  await expect(tasks.getTask({})).rejects.toMatchObject(refused);
  ends[0]?.();
});

it('does no audited work that the log could not note before', async () => {
  const worked: string[] = [];
  const audit = { write: () => Promise.reject(new EtudeError('QUEUE_UNAVAILABLE', 'Redis is away')) };
  const log = { warn: () => undefined, error: () => undefined };
  const authenticator = new Authenticator(null, 'local');
  const calls = new Calls({ authenticator, shutdown: new AbortController().signal, perTenantMax: 1, log, audit });
  const handlers = Queues.methods.map(({ localName }) => [localName, () => void worked.push(localName)]);
  calls.serve(Queues, Object.fromEntries(handlers) as object, {});
  expect(await codeOf(localClient(calls, Queues).redriveDeadLetters({}))).toBe('QUEUE_UNAVAILABLE');
  expect(worked).toEqual([]);
});

it('does not count streams and waits', async () => {
  const { tasks, ends, waiting } = served({ perTenantMax: 1 });
  const taken = [tasks.waitTask({}), tasks.waitTask({}), tasks.getTask({})];
  for await (const event of tasks.watchTask({})) expect(event.$typeName).toBe('etude.v1.TaskEvent');
  await waiting(taken.length);
  ends.forEach((end) => end());
  await Promise.all(taken);
});

it('starts no work after the deadline or after the caller has left', async () => {
  const { tasks, ends } = served();
  expect(await codeOf(tasks.getTask({}, { timeoutMs: -1 }))).toBe('DEADLINE_EXCEEDED');
  expect(await codeOf(tasks.getTask({}, { signal: AbortSignal.abort() }))).toBe('CANCELLED');
  expect(ends).toEqual([]);
});

it('stops waiting for work at the deadline', async () => {
  const { tasks } = served();
  expect(await codeOf(tasks.getTask({}, { timeoutMs: 5 }))).toBe('DEADLINE_EXCEEDED');
});

it('aborts handlers at shutdown and gives their callers the reason', async () => {
  const { tasks, ends, contexts, shutdown, waiting } = served();
  const call = codeOf(tasks.getTask({}));
  await waiting();
  shutdown.abort(new EtudeError('SHUTTING_DOWN', 'call again'));
  expect(contexts[0]?.signal.reason).toMatchObject({ code: 'SHUTTING_DOWN' });
  ends[0]?.(Object.assign(new Error('This operation was aborted'), { name: 'AbortError' }));
  expect(await call).toBe('SHUTTING_DOWN');
});

it('keeps code and message of an error from another process', async () => {
  const { tasks, ends, logged, waiting } = served();
  const call = tasks.getTask({}).catch((error: unknown) => error);
  await waiting();
  ends[0]?.({ code: 'NOT_FOUND', message: 'There is no such task.' });
  expect(await call).toMatchObject({ code: 'NOT_FOUND', message: 'There is no such task.' });
  expect(logged).toEqual([]);
});

it.each([new Error('secret detail'), 'secret detail'])('shows only an id for an error without a code: %s', async (mistake) => {
  const { tasks, ends, logged, waiting } = served();
  const call = tasks.getTask({});
  await waiting();
  ends[0]?.(mistake);
  const told = await call.then(
    () => expect.unreachable('it did not fail'),
    (thrown: unknown) => thrown as EtudeError,
  );
  expect(told).toMatchObject({ code: 'INTERNAL' });
  expect(told.message).not.toContain('secret');
  expect(logged).toMatchObject([{ errorId: told.details.metadata?.['id'] }]);
});

it('fails if a method has no handler', () => {
  expect(() => served().calls.handlersOf(Queues)).toThrow('etude.v1.Queues.ListQueues has no handler');
});

it.each([
  ['a minute without a timeout', undefined, Infinity, 60_000],
  ['until a second before the deadline', 60n, 20_000, 19_000],
  ['until a tenth before a short deadline', 60n, 100, 90],
  ['not at all after the deadline', undefined, -5, 0],
])('waits %s', (_what, seconds, untilDeadlineMs, expected) => {
  const timeout = seconds === undefined ? undefined : create(DurationSchema, { seconds });
  expect(waitMs(timeout, untilDeadlineMs)).toBe(expected);
});

const current = new AsyncLocalStorage<string>();
const ended: string[] = [];
const tracing: Tracing = {
  get current() {
    return current.getStore();
  },
  async span(name, _start, work) {
    return current
      .run(name, () => work({ set: () => undefined, setContent: () => undefined }))
      .then(
        (value) => (ended.push(name), value),
        (error: unknown) => {
          ended.push(`${name} failed`);
          throw error;
        },
      );
  },
};

async function* answers(failing = false) {
  yield tracing.current;
  await Promise.resolve();
  yield tracing.current;
  if (failing) throw new Error('broken');
}

it('makes each answer of a stream in its span, and reads it outside', async () => {
  const seen = [];
  for await (const answer of streamSpan(tracing, 'whole', {}, () => answers())) seen.push([answer, tracing.current]);
  expect(seen).toEqual([
    ['whole', undefined],
    ['whole', undefined],
  ]);
  expect(ended).toContain('whole');
});

it('ends the span of a stream that breaks, and of one that is left', async () => {
  await expect(Array.fromAsync(streamSpan(tracing, 'broken', {}, () => answers(true)))).rejects.toThrow('broken');
  const left = streamSpan(tracing, 'left', {}, () => answers());
  await left.next();
  await left.return(undefined);
  expect(ended).toEqual(expect.arrayContaining(['broken failed', 'left']));
});
