import { SessionRequest } from '@etude/contracts/sandbox';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { newSandboxId, SandboxSessionStore, SESSION_KEPT_MS, type SessionEnd } from './sandbox-sessions.js';
import { ControllerDirectory } from './controllers.js';

const startQueue = queueForFile();

const request = (requestId: string, more: object = {}) => SessionRequest.parse({ tenant: 'acme', requestId, limits: {}, ...more });
const owner = (controllerId = 'c1', place: string | null = 'there') => ({ controllerId, place });

function start() {
  const { redis, keys } = startQueue();
  const store = new SandboxSessionStore(redis, keys);
  const open = async (requestId: string, more: object = {}) =>
    (await store.open(newSandboxId(), request(requestId, more), owner(), 100)).stored;
  return { redis, keys, store, open, directory: new ControllerDirectory(redis, keys) };
}

describe('sessions in Redis', () => {
  it('contain the request and the holder', async () => {
    const { store, open } = start();
    const { session } = await open('a', { ttlMs: 5_000, labels: { team: 'x' }, template: 'science', limits: { memoryMiB: 64 } });
    expect(session).toMatchObject({ tenant: 'acme', state: 'open', template: 'science', labels: { team: 'x' }, limits: { memoryMiB: 64 } });
    expect(session.expiresAt - session.createdAt).toBe(5_000);
    expect(await store.get('acme', session.id)).toEqual({ session, controllerId: 'c1', ownerEpoch: 1, place: 'there' });
    expect(await store.get('other', session.id)).toBeNull();
  });

  it('are listed newest first, in pages and by state', async () => {
    const { store, open } = start();
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.unshift((await open(name)).session.id);
    await store.end('acme', ids[1] ?? '', 1, 'lost', 'evicted: away');
    const first = await store.list('acme', { pageSize: 2 });
    const second = await store.list('acme', { pageSize: 2, after: first.nextAfter ?? '' });
    const third = await store.list('acme', { pageSize: 2, after: second.nextAfter ?? '' });
    expect([first, second, third].map((page) => page.items.map(({ id }) => id))).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
    expect(third.nextAfter).toBeNull();
    expect((await store.list('acme', { pageSize: 9, state: 'lost' })).items).toMatchObject([{ id: ids[1], stateReason: 'evicted: away' }]);
    expect(await store.list('other', { pageSize: 9 })).toEqual({ items: [], nextAfter: null });
  });

  it('expire after their end, with their request id and their place in the list', async () => {
    const { store, open, redis, keys } = start();
    const { session } = await open('a');
    expect(await redis.pttl(keys.sandbox('acme', session.id))).toBe(-1);
    await store.end('acme', session.id, 1, 'closed', '');
    const kept = [keys.sandbox('acme', session.id), keys.request('acme', 'sandbox', 'a')];
    for (const key of kept) expect(await redis.pttl(key)).toBeGreaterThan(SESSION_KEPT_MS - 60_000);
    await redis.del(...kept);
    expect(await store.findRequest(request('a'))).toBeNull();
    expect((await store.list('acme', { pageSize: 9 })).items).toEqual([]);
    expect(await redis.zcard(keys.sandboxes('acme'))).toBe(0);
  });
});

const CONTROLLERS = ['c1', 'c2'] as const;
type Act =
  | { readonly do: 'end'; readonly stale: number; readonly state: SessionEnd }
  | { readonly do: 'renew'; readonly stale: number }
  | { readonly do: 'take'; readonly stale: number; readonly by: (typeof CONTROLLERS)[number] };

interface Model {
  state: 'open' | SessionEnd;
  epoch: number;
  holder: string;
}

/** Applies an act to the model. @returns the expected answer of the store */
function step(model: Model, act: Act): string | number {
  if (model.state !== 'open') return model.state;
  if (act.stale > 0) return 'fenced';
  if (act.do === 'renew') return 'renewed';
  if (act.do === 'take') model.holder = act.by;
  else model.state = act.state;
  return act.do === 'take' ? (model.epoch += 1) : 'ended';
}

const stale = fc.constantFrom(0, 0, 0, 1);
const acts = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('end' as const), stale, state: fc.constantFrom<SessionEnd>('closed', 'expired', 'lost') }),
    fc.record({ do: fc.constant('renew' as const), stale }),
    fc.record({ do: fc.constant('take' as const), stale, by: fc.constantFrom(...CONTROLLERS) }),
  ) as fc.Arbitrary<Act>,
  { maxLength: 12 },
);

describe('a session under random acts', () => {
  it('ends once, is changed by its holder alone, and is in every index exactly while it is open', async () => {
    const { store, open } = start();
    let made = 0;
    const perform = (id: string, act: Act, epoch: number) => {
      if (act.do === 'end') return store.end('acme', id, epoch, act.state, act.state);
      return act.do === 'renew' ? store.renew('acme', id, epoch, 60_000) : store.takeOver('acme', id, epoch, act.by);
    };
    const property = fc.asyncProperty(acts, async (sequence) => {
      const { session } = await open(`r${(made += 1)}`);
      const model: Model = { state: 'open', epoch: 1, holder: 'c1' };
      for (const act of sequence) {
        const answer = await perform(session.id, act, model.epoch - act.stale);
        expect(typeof answer === 'string' ? answer : answer.ownerEpoch).toBe(step(model, act));
      }
      const stored = await store.get('acme', session.id);
      expect(stored).toMatchObject({ session: { state: model.state }, ownerEpoch: model.epoch, controllerId: model.holder });
      const holders: string[] = [];
      for (const controller of CONTROLLERS)
        if ((await store.heldBy(controller)).some(({ id }) => id === session.id)) holders.push(controller);
      expect(holders).toEqual(model.state === 'open' ? [model.holder] : []);
      expect(await store.openCount('acme')).toBe(model.state === 'open' ? 1 : 0);
      await store.end('acme', session.id, model.epoch, 'closed', '');
    });
    await fc.assert(property, { numRuns: 60 });
  });
});

const announcement = (controllerId: string, sessions = 0) => {
  const pool = { warm: 2, claimsWaiting: 0 };
  return { controllerId, address: '127.0.0.1:7000', sessions, sessionsMax: 8, ...pool };
};

describe('the directory of controllers', () => {
  it('counts a controller as dead without heartbeats, and at once after its shutdown', async () => {
    const { directory, redis, keys } = start();
    await directory.announce(announcement('silent'));
    await directory.announce(announcement('silent', 3));
    expect(await directory.live()).toEqual([announcement('silent', 3)]);
    await redis.zadd(keys.controllersSeen, 'XX', Date.now() - 6_000, 'silent');
    expect(await directory.live()).toEqual([]);
    await directory.announce(announcement('left'));
    await directory.withdraw('left');
    expect(await directory.live()).toEqual([]);
    expect(await directory.dead()).toEqual([
      { controllerId: 'left', left: true },
      { controllerId: 'silent', left: false },
    ]);
  });

  it('keeps a dead controller until another has taken its sessions over', async () => {
    const { directory, redis, keys } = start();
    await directory.announce(announcement('a'));
    await directory.forget('a');
    expect(await directory.live()).toHaveLength(1);
    await directory.withdraw('a');
    await redis.sadd(keys.heldSandboxes('a'), 'acme/s1');
    await directory.forget('a');
    expect(await directory.dead()).toHaveLength(1);
    await redis.del(keys.heldSandboxes('a'));
    await directory.forget('a');
    expect(await directory.dead()).toEqual([]);
    expect(await redis.hlen(keys.controllers)).toBe(0);
  });
});
