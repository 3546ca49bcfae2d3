import { EtudeError } from '@etude/contracts/errors';
import { RedisToolSessions } from '@etude/queue/agents/tool-sessions';
import { Producer } from '@etude/queue/jobs/producer';
import { ControllerChannels, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { startRedis, type TestRedis } from '@etude/test-support/redis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { SandboxCodeSessions } from '../src/tools/sandbox-code-sessions.js';
import { FakeController, FakeWorld, TOKEN } from './fake-controller.js';

const KEY = { tenant: 'acme', agent: 'coder', user: null, session: 'report' };
const never = new AbortController().signal;

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis({ durable: false });
});
afterAll(() => server.stop());

it('is one sandbox for all calls of a session, then another, and tells what was lost', async () => {
  const producer = new Producer(server.url, 'code-sessions');
  onTestFinished(() => producer.close());
  const { redis, keys } = producer;
  const controller = await new FakeController(producer, new FakeWorld()).start();
  onTestFinished(() => controller.kill());
  const sandboxes = new SandboxSessionStore(redis, keys);
  const router = new SandboxRouter({
    sessions: sandboxes,
    directory: new ControllerDirectory(redis, keys),
    channels: new ControllerChannels(TOKEN),
  });
  onTestFinished(() => router.close());
  const sessions = new RedisToolSessions(redis, keys);
  const code = new SandboxCodeSessions({ router, sandboxes, sessions, openMax: 6 });
  const open = async (template = 'default') => {
    const session = await code.open(KEY, template, never);
    if ('unavailable' in session) throw new Error(session.unavailable);
    return session;
  };
  const end = (name: string) => sandboxes.end('acme', name.slice('sandboxes/'.length), 1, 'lost', 'node_lost: the node is gone');

  controller.refusal = new EtudeError('INVALID_ARGUMENT', 'there is no such template');
  await expect(open('gone')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  controller.refusal = null;
  const all = await Promise.all([open(), open(), open()]);
  const names = new Set(all.map(({ sandbox }) => sandbox.name));
  expect(names.size).toBe(1);
  await end([...names].join());
  const next = await open();
  expect(names.has(next.sandbox.name)).toBe(false);
  expect([all[0]?.isReplaced, next.isReplaced]).toEqual([false, true]);

  // Removes the record, as if the first call had stopped after it opened the sandbox.
  await redis.del(keys.toolSession('acme', 'coder', '', 'report'));
  const anew = await open();
  expect(anew.sandbox.name).not.toBe(next.sandbox.name);
  expect(names.has(anew.sandbox.name)).toBe(false);

  await end(anew.sandbox.name);
  await controller.kill();
  await expect(anew.inTurn(() => anew.sandbox.list(never), never)).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
    message: expect.stringMatching(/sandbox was lost \(.*the node is gone.*The next call opens a new sandbox\./) as string,
  });
});
