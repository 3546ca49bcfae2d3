import { until } from '@etude/test-support/until';
import { asyncProperty, assert as property, array, constantFrom, nat, oneof, record, constant } from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cut, KubeServerFixture, refuse } from '../../test/kubernetes/kube-server-fixture.js';
import { PodWatch, type PodWatchOptions } from './pod-watch.js';

const never = new AbortController().signal;
const known = (watch: PodWatch) =>
  Object.fromEntries([...watch.pods.values()].map((pod) => [pod.name, `${pod.uid} ${pod.phase} ${pod.resourceVersion}`]));

describe('PodWatch', () => {
  let server: KubeServerFixture;
  let watch: PodWatch;

  async function started(options: Partial<PodWatchOptions> = {}): Promise<void> {
    watch = new PodWatch(server.api(), { selector: 'a=b', backoffMinMs: 5, backoffMaxMs: 20, ...options });
    await watch.start(never);
  }
  /** Waits until the watch has the state of the server. */
  async function agrees(): Promise<void> {
    await expect.poll(() => known(watch), { interval: 10 }).toEqual(server.truth);
  }
  const watching = () => until(() => server.watchers === 1, { what: 'a watch' });

  beforeEach(async () => {
    server = await KubeServerFixture.start();
  });
  afterEach(async () => {
    await watch.close();
    await server.close();
  });

  it('resumes from a bookmark without a new list', async () => {
    await started();
    await watching();
    server.put('seen');
    server.put('quiet');
    server.remove('quiet');
    server.bookmark();
    await until(() => watch.resourceVersion === server.version);
    server.compact();
    server.end('cleanly');
    await watching();
    server.put('later');
    await agrees();
    expect(server.count('list')).toBe(1);
    expect(
      server.asked.filter(({ kind }) => kind === 'watch').every(({ url }) => url.searchParams.get('allowWatchBookmarks') === 'true'),
    ).toBe(true);
  });

  it('waits as long as a busy server requests', async () => {
    await started();
    await watching();
    const times: number[] = [];
    server.next('watch', (request, response) => {
      times.push(performance.now());
      server.next('watch', (_request, second) => {
        times.push(performance.now());
        second.socket?.destroy();
      });
      refuse(429, 'TooManyRequests', 'busy', { 'retry-after': '1' })(request, response);
    });
    server.end('cut');
    await until(() => times.length === 2);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(999);
  });

  it('lists again after five failed watches', async () => {
    await started();
    await watching();
    for (let i = 0; i < 5; i++) server.next('watch', refuse(504, 'Timeout', 'Too large resource version'));
    server.end('cut');
    await until(() => server.count('list') === 2);
    await watching();
    expect(server.count('watch')).toBe(7);
  });
});

const step = oneof(
  { weight: 8, arbitrary: record({ act: constant('put' as const), name: nat(6), phase: constantFrom('Pending', 'Running', 'Failed') }) },
  { weight: 3, arbitrary: record({ act: constant('remove' as const), name: nat(6), phase: constant('') }) },
  {
    weight: 4,
    arbitrary: record({
      act: constantFrom('cut', 'end', 'compact', 'bookmark', 'mute', 'garbage', 'half', 'refuse list', 'refuse watch', 'busy', 'breathe'),
      name: constant(0),
      phase: constant(''),
    }),
  },
);

describe('PodWatch under faults', () => {
  it('converges to the state of the server under any faults', async () => {
    await property(
      asyncProperty(array(step, { maxLength: 40 }), async (steps) => {
        const server = await KubeServerFixture.start();
        const watch = new PodWatch(server.api(), { selector: 'a=b', backoffMinMs: 1, backoffMaxMs: 4, silentMs: 60 });
        const told = new Map<string, string>();
        watch.subscribe(({ pod, gone }) => {
          if (gone && told.get(pod.name) !== pod.uid) throw new Error(`${pod.name} ended without having begun`);
          if (gone) told.delete(pod.name);
          else told.set(pod.name, pod.uid);
        });
        watch.start(never).catch(() => undefined);
        try {
          for (const { act, name, phase } of steps) await apply(server, act, `pod-${name}`, phase);
          server.muted = false;
          await expect.poll(() => known(watch), { interval: 2 }).toEqual(server.truth);
          expect([...told.keys()].toSorted()).toEqual([...watch.pods.keys()].toSorted());
        } finally {
          await watch.close();
          await server.close();
        }
      }),
      { numRuns: 60 },
    );
  });
});

async function apply(server: KubeServerFixture, act: string, name: string, phase: string): Promise<void> {
  const acts: Record<string, () => void> = {
    put: () => server.put(name, phase),
    remove: () => server.remove(name),
    cut: () => server.end('cut'),
    end: () => server.end('cleanly'),
    compact: () => server.compact(),
    bookmark: () => (server.muted ? undefined : server.bookmark()),
    // Open connections get no more events, but new connections do.
    mute: () => void (server.muted = true),
    garbage: () => server.send('{"type":\n'),
    half: () => server.send('{"type":"ADDED","obj'),
    'refuse list': () => server.next('list', refuse(503, 'ServiceUnavailable')),
    'refuse watch': () => server.next('watch', cut),
    busy: () => server.next('watch', refuse(429, 'TooManyRequests', 'busy', { 'retry-after': '0' })),
    breathe: () => undefined,
  };
  acts[act]?.();
  if (act === 'breathe' || act === 'compact') await new Promise((resolve) => setImmediate(resolve));
}
