import { SessionRequest } from '@etude/contracts/sandbox';
import { memberOf, RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis } from '@etude/queue/redis/redis';
import { ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { newSandboxId, SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { startRedis } from '@etude/test-support/redis';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FakeCluster } from '../../test/fake-driver.js';
import type { ExecutionEvent } from './execution-log.js';
import type { HeldSession } from './held-session.js';
import { SessionHost } from './session-host.js';
import { SessionUpkeep } from './session-service.js';

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
const never = () => new AbortController().signal;
const request = (requestId: string, more: object = {}) => SessionRequest.parse({ tenant: 'acme', requestId, limits: {}, ...more });
const reached = (outcome: string) => expect.objectContaining({ code: outcome });

const redis = redisForFile();

function world({ url }: { readonly url: string } = redis) {
  const cluster = new FakeCluster();
  const keys = new RedisKeys(redis.prefix());
  const connection = connectRedis(url, 'producer');
  onTestFinished(() => connection.disconnect());
  const store = new SandboxSessionStore(connection, keys);
  const controllers: string[] = [];
  const start = async (more: { sessionsMax?: number; tenantSessionsMax?: number } = {}) => {
    const controllerId = `c${controllers.push('')}`;
    const directory = new ControllerDirectory(connection, keys);
    const parts = { controllerId, driver: cluster.driver(), store, logger: silent };
    const { sessionsMax = 8, tenantSessionsMax = 4 } = more;
    const host = new SessionHost({ ...parts, sessionsMax, tenantSessionsMax: () => tenantSessionsMax });
    const self = { controllerId, address: '127.0.0.1:1', sessionsMax: 8 };
    const upkeep = new SessionUpkeep({ host, store, directory, self, logger: silent });
    await directory.announce({ ...self, sessions: 0 });
    return { controllerId, host, upkeep, directory };
  };
  return { cluster, connection, keys, store, start };
}

/** Starts an execution, or follows a known one. @returns its events */
async function events(held: HeldSession, executionId: string, code: string, seen = 0, mayRun = true) {
  const log = await held.execute({ executionId, run: { kind: 'cell', code }, limits: held.session.limits }, mayRun);
  return log.read(seen, never());
}
/** Follows an execution without its code. */
const follow = (held: HeldSession, seen: number) => events(held, 'x', '', seen, false);

function wordOf(event: ExecutionEvent): string {
  if (event.kind === 'stdout' || event.kind === 'stderr') return event.text;
  return event.kind === 'outcome' ? `=${event.result.exit}` : 'display';
}

type Events = AsyncIterable<ExecutionEvent> | Promise<AsyncIterable<ExecutionEvent>>;

const allOf = async (told: Events) => Array.fromAsync(await told);
const words = async (told: Events) => (await allOf(told)).map(wordOf);

describe('opening a session', () => {
  it('makes one session for two equal requests and destroys the second sandbox', async () => {
    const { cluster, start } = world();
    const [one, other] = [await start(), await start()];
    const [a, b] = await Promise.all([one.host.open(request('a'), never()), other.host.open(request('a'), never())]);
    expect(a.id).toBe(b.id);
    expect(cluster.sandboxes.filter(({ released }) => !released)).toHaveLength(1);
  });

  it('counts waiting claims towards both limits and claims no sandbox beyond them', async () => {
    const { cluster, start } = world();
    const { host } = await start({ sessionsMax: 3, tenantSessionsMax: 2 });
    const gate = Promise.withResolvers<void>();
    cluster.gate = gate.promise;
    const opening = [host.open(request('a'), never()), host.open(request('b'), never())];
    await until(() => host.sessionCount === 2);
    await expect(host.open(request('c'), never())).rejects.toMatchObject({
      code: 'SANDBOX_CAPACITY',
      details: { metadata: { openMax: '2' } },
    });
    gate.resolve();
    await Promise.all(opening);
    const more = await Promise.allSettled(['d', 'e', 'f'].map((id) => host.open(request(id, { tenant: 'other' }), never())));
    expect(more.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(more.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))).toEqual([
      reached('SANDBOX_CAPACITY'),
      reached('SANDBOX_CAPACITY'),
    ]);
    expect(cluster.sandboxes).toHaveLength(3);
  });

  it('leaves no session after its caller has left', async () => {
    const { cluster, store, start } = world();
    const { host } = await start();
    const gone = new AbortController();
    const gate = Promise.withResolvers<void>();
    cluster.gate = gate.promise;
    const opening = host.open(request('a'), gone.signal);
    await until(() => host.sessionCount === 1);
    gone.abort();
    gate.resolve();
    await expect(opening).rejects.toThrow(/./);
    expect(host.sessionCount).toBe(0);
    expect(await store.openCount('acme')).toBe(0);
  });
});

async function opened() {
  const { cluster, start } = world();
  const { host } = await start();
  const { id } = await host.open(request('a'), never());
  const held = await host.find('acme', id);
  return { cluster, host, id, held, sandbox: cluster.newest };
}

describe('a session while Redis is away', () => {
  it('can be used, and its end is stored once Redis is back', async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const { cluster, store, start } = world(own);
    const { host, upkeep } = await start();
    const { id } = await host.open(request('a'), never());
    await own.pause();
    const held = await host.find('acme', id);
    expect(await words(events(held, 'x', 'one'))).toEqual(['one', 'tail', '=ok']);
    cluster.newest.lose({ exit: 'evicted', message: 'away' });
    await until(() => host.sessionCount === 0);
    await expect(host.find('acme', id)).rejects.toEqual(reached('QUEUE_UNAVAILABLE'));
    await own.resume();
    const looked = () => upkeep.look().then(() => true);
    await until(() => looked().catch(() => false));
    expect(await store.get('acme', id)).toMatchObject({ session: { state: 'lost', stateReason: 'evicted: away' } });
  });
});

describe('executions of a session', () => {
  it('run once and can be followed by many callers from any event', async () => {
    const { held, sandbox } = await opened();
    const first = await events(held, 'x', 'one wait two three');
    await first.next();
    const second = words(events(held, 'x', 'one wait two three', 1));
    await expect(events(held, 'y', 'other')).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      details: { metadata: { executionId: 'x' } },
    });
    sandbox.go();
    expect(await second).toEqual(['two', 'three', 'tail', '=ok']);
    const all = await allOf(events(held, 'x', 'one wait two three'));
    const told = await Promise.all(all.map((_, index) => words(follow(held, index + 1))));
    expect(told).toEqual(all.map((_, index) => all.slice(index + 1).map(wordOf)));
    expect(await words(events(held, 'y', 'other'))).toEqual(['other', 'tail', '=ok']);
    expect(sandbox.ran).toEqual(['x', 'y']);
  });

  it('refuse a resume token after their last event', async () => {
    const { held } = await opened();
    const { length } = await allOf(events(held, 'x', 'one'));
    await expect(words(follow(held, length + 1))).rejects.toEqual(reached('INVALID_ARGUMENT'));
  });

  it('end with their output and the exit reason when the sandbox is lost', async () => {
    const { held, host, id, sandbox } = await opened();
    const told = await events(held, 'x', 'one wait');
    await told.next();
    sandbox.lose({ exit: 'node_lost', message: 'the node is gone' });
    expect(await words(told)).toEqual(['=node_lost']);
    await expect(host.find('acme', id)).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      details: { metadata: { state: 'lost', reason: 'node_lost: the node is gone' } },
    });
  });

  it('end as cancelled when the session is closed', async () => {
    const { held, host, id, sandbox } = await opened();
    const told = await events(held, 'x', 'one wait');
    expect(await host.close('acme', id)).toMatchObject({ state: 'closed' });
    expect(await words(told)).toEqual(['one', '=cancelled']);
    expect([host.sessionCount, sandbox.released]).toEqual([0, true]);
  });
});

describe('a session whose controller is gone', () => {
  it('continues at another controller after a shutdown, with its execution', async () => {
    const { cluster, store, start } = world();
    const [one, other] = [await start(), await start()];
    const { id } = await one.host.open(request('a'), never());
    const held = await one.host.find('acme', id);
    const told = await events(held, 'x', 'one wait two');
    await told.next();
    await one.host.shutDown();
    await one.upkeep.close();
    await expect(told.next()).rejects.toEqual(reached('SHUTTING_DOWN'));
    await other.upkeep.look();
    expect(await store.get('acme', id)).toMatchObject({ controllerId: other.controllerId, ownerEpoch: 2, session: { state: 'open' } });
    const next = await other.host.find('acme', id);
    const rest = words(follow(next, 1));
    cluster.newest.go();
    expect(await rest).toEqual(['two', 'tail', '=ok']);
    expect(await words(events(next, 'x', 'one wait two'))).toEqual(['one', 'two', 'tail', '=ok']);
    expect(cluster.newest).toMatchObject({ ran: ['x'], left: 1, released: false });
  });

  it('is taken over with fields of a later version, and beside a damaged session', async () => {
    const { connection, keys, store, start } = world();
    const [one, other] = [await start(), await start()];
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c']) ids.push((await one.host.open(request(name), never())).id);
    const [damaged = '', newer = '', whole = ''] = ids;
    await one.host.shutDown();
    await one.upkeep.close();
    const spec = (await connection.hget(keys.sandbox('acme', newer), 'spec')) ?? '';
    await connection.hset(keys.sandbox('acme', newer), 'spec', spec.replace('"limits":{', '"limits":{"fieldOfALaterVersion":1,'));
    await connection.hset(keys.sandbox('acme', damaged), 'spec', 'no JSON');
    await other.upkeep.look();
    for (const id of [newer, whole]) expect(await store.get('acme', id)).toMatchObject({ controllerId: other.controllerId });
    expect(await store.heldBy(one.controllerId)).toEqual([{ tenant: 'acme', id: damaged }]);
  });

  it('ends beside a damaged one, and a held one stays although its record is damaged', async () => {
    const { connection, keys, store, start } = world();
    const { host, upkeep, controllerId } = await start();
    const { id } = await host.open(request('a'), never());
    const [damaged, unheld] = [newSandboxId(), newSandboxId()];
    for (const lost of [damaged, unheld]) await store.open(lost, request(lost), { controllerId, place: 'gone' }, 9);
    for (const one of [damaged, id]) await connection.hset(keys.sandbox('acme', one), 'spec', 'no JSON');
    await connection.srem(keys.heldSandboxes(controllerId), memberOf('acme', id));
    for (let round = 0; round < 2; round += 1) await upkeep.look();
    expect(await store.get('acme', unheld)).toMatchObject({ session: { state: 'lost' } });
    expect(host.sessionCount).toBe(1);
  });

  it('is lost when its sandbox ended with the controller', async () => {
    const { cluster, store, start } = world();
    const [one, other] = [await start(), await start()];
    const { id } = await one.host.open(request('a'), never());
    await one.directory.withdraw(one.controllerId);
    cluster.newest.released = true;
    await other.upkeep.look();
    await expect(other.host.find('acme', id)).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      details: { metadata: { state: 'lost' } },
    });
    expect((await store.get('acme', id))?.session.stateReason).toContain('its sandbox is gone');
  });

  it('is released by the controller that lost it', async () => {
    const { cluster, start } = world();
    const [one, other] = [await start(), await start()];
    const { id } = await one.host.open(request('a'), never());
    await one.directory.withdraw(one.controllerId);
    await other.upkeep.look();
    await one.upkeep.look();
    expect([one.host.sessionCount, other.host.sessionCount]).toEqual([0, 1]);
    expect(cluster.newest).toMatchObject({ left: 1, released: false });
    const held = { code: 'SANDBOX_UNAVAILABLE', details: { metadata: { controller: other.controllerId } } };
    await expect(one.host.find('acme', id)).rejects.toMatchObject(held);
  });
});
