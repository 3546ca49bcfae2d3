import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { RedisToolSessions } from '@etude/queue/agents/tool-sessions';
import { Producer } from '@etude/queue/jobs/producer';
import { ControllerChannels, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { startRedis, type TestRedis } from '@etude/test-support/redis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
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

async function start(prefix: string) {
  const producer = new Producer(server.url, prefix);
  onTestFinished(() => producer.close());
  const { redis, keys } = producer;
  const world = new FakeWorld();
  const controller = await new FakeController(producer, world).start();
  onTestFinished(() => controller.kill());
  const known = new SandboxSessionStore(redis, keys);
  const channels = new ControllerChannels(TOKEN);
  const router = new SandboxRouter({ sessions: known, directory: new ControllerDirectory(redis, keys), channels });
  onTestFinished(() => router.close());
  const claims = new RedisToolSessions(redis, keys);
  const sessions = new SandboxCodeSessions({ router, sandboxes: known, sessions: claims, openMax: 6 });
  return { controller, world, claims, open: (template: string) => sessions.open(KEY, template, never) };
}

describe('the claim of a tool session whose sandbox was not created', () => {
  it.each<ErrorCode>(['INVALID_ARGUMENT', 'NOT_FOUND', 'ALREADY_EXISTS', 'FAILED_PRECONDITION'])(
    'is dropped after %s, so that the next call may request another template',
    async (code) => {
      const { controller, claims, open } = await start(`given-back-${code}`);
      controller.refusal = new EtudeError(code, 'there is no such template');
      await expect(open('gone')).rejects.toMatchObject({ code });
      expect(await claims.readSandbox(KEY)).toEqual({ requestId: null, sandbox: null });
      expect((await claims.claimSandbox(KEY, null, { requestId: 'next', template: 'default' })).template).toBe('default');
    },
  );

  it.each<ErrorCode>(['SANDBOX_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL'])(
    'is kept after %s, so that the next call gets the sandbox that may exist',
    async (code) => {
      const { controller, claims, open } = await start(`kept-${code}`);
      controller.refusal = new EtudeError(code, 'who knows');
      await expect(open('default')).rejects.toMatchObject({ code });
      const { requestId } = await claims.readSandbox(KEY);
      expect(requestId).toMatch(/^tool-/);
      controller.refusal = null;
      expect(await open('default')).toMatchObject({ isReplaced: false });
      expect(await claims.readSandbox(KEY)).toMatchObject({ requestId });
    },
  );
});

it('stops the cell if its caller leaves', async () => {
  const { world, open } = await start('stopped');
  const session = await open('default');
  if ('unavailable' in session) throw new Error(session.unavailable);
  const gone = new AbortController();
  const cell = session.run({ executionId: 'cell-1', code: 'wait' }, gone.signal);
  await expect.poll(() => world.ran).toEqual(['wait']);
  gone.abort(new EtudeError('CANCELLED', 'The caller ended the call.'));
  await expect(cell).rejects.toMatchObject({ code: 'CANCELLED' });
  expect(world.cancelled).toEqual(['cell-1']);
});
