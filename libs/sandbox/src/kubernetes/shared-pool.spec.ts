import { setImmediate as afterLook, setTimeout as sleep } from 'node:timers/promises';
import { until } from '@etude/test-support/until';
import { EtudeError } from '@etude/contracts/errors';
import { assert, asyncProperty, integer, record } from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KubernetesDriver } from './kubernetes-driver.js';
import type { PoolSettings } from './pool-settings.js';
import { SandboxTemplates } from './sandbox-template.js';
import { SimulatedCluster } from '../../test/kubernetes/simulated-cluster-fixture.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const SHAPE = { template: 'default', memoryMiB: 16, diskMiB: 1 };
const QUICK: Partial<PoolSettings> = {
  quietMs: 2,
  adoptAfterMs: 150,
  claimWaitMs: 60_000,
  reapEveryMs: 60,
  backoffMs: 30,
  explainMs: 50,
};
const never = new AbortController().signal;

function driverOf(cluster: SimulatedCluster, warm: object, delayMs = () => 0, settings: Partial<PoolSettings> = {}): KubernetesDriver {
  const templates = SandboxTemplates.parse({ default: { image: 'sandbox', warm } });
  const driver = new KubernetesDriver(
    { installation: 'pool', tokenSecret: 'a secret', templates, logger: silent, settings: { ...QUICK, ...settings } },
    { api: cluster.api, open: cluster.open, feed: cluster.feed(delayMs) },
  );
  onTestFinished(() => driver.close());
  return driver;
}

const free = (driver: KubernetesDriver) => driver.figures().default?.free;
const ready = (driver: KubernetesDriver, count: number) => until(() => free(driver) === count, { what: `${count} free pods` });

describe('the pool of pods', () => {
  it('replaces a claimed pod after the claim', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 2, max: 8 });
    await ready(driver, 2);
    const sandbox = await driver.claim(SHAPE, never);
    expect(cluster.creations).toBe(2);
    await ready(driver, 2);
    expect(cluster.creations).toBe(3);
    await sandbox.release();
    await until(() => cluster.pods.size === 2, { what: 'the used pod to be deleted' });
  });

  it('delays replacements until half of the free pods are used up', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 4, max: 8 }, () => 0, { quietMs: 60_000 });
    await ready(driver, 4);
    for (let i = 0; i < 2; i += 1) await driver.claim(SHAPE, never);
    await afterLook();
    expect(driver.figures().default?.creations).toBe(4);
    await driver.claim(SHAPE, never);
    await afterLook();
    expect(driver.figures().default?.creations).toBe(7);
    await ready(driver, 4);
  });

  it('starts at most startsMax pods at the same time', async () => {
    const cluster = new SimulatedCluster();
    await ready(
      driverOf(cluster, { free: 5, max: 8 }, () => 0, { startsMax: 2 }),
      5,
    );
    expect(cluster.mostStarting).toBe(2);
  });

  it('creates no pod twice when the watch is seconds late', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 4, max: 20 }, () => 1_200);
    await until(() => free(driver) === 4, { what: '4 free pods' });
    expect(cluster.creations).toBe(4);
    await driver.claim(SHAPE, never);
    await until(() => free(driver) === 4, { what: '4 free pods again' });
    expect(cluster.creations).toBe(5);
  });

  it('refuses with capacity and the number of waiting claims', async () => {
    const driver = driverOf(new SimulatedCluster(), { free: 0, max: 1 }, () => 0, { claimWaitMs: 150, waitingMax: 2 });
    await driver.claim(SHAPE, never);
    const waiting = [driver.claim(SHAPE, never), driver.claim(SHAPE, never)];
    await until(() => driver.counts().waiting === 2);
    await expect(driver.claim(SHAPE, never)).rejects.toMatchObject({
      code: 'SANDBOX_CAPACITY',
      details: { metadata: { exit: 'capacity', position: '2', limit: '1' } },
    });
    for (const claim of waiting) await expect(claim).rejects.toMatchObject({ code: 'SANDBOX_CAPACITY' });
  });

  it('serves waiting claims in order', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 0, max: 1 });
    const first = await driver.claim(SHAPE, never);
    const order: number[] = [];
    const waiting = [1, 2, 3].map(async (n) => {
      const sandbox = await driver.claim(SHAPE, never);
      order.push(n);
      await sandbox.release();
    });
    await first.release();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2, 3]);
  });

  it('reports a full quota and retries with backoff', async () => {
    const cluster = new SimulatedCluster();
    cluster.refuse = new EtudeError('SANDBOX_CAPACITY', 'exceeded quota: pods', {
      metadata: { exit: 'capacity', reason: 'QuotaExceeded', status: '403' },
    });
    const driver = driverOf(cluster, { free: 2, max: 4 }, () => 0, { claimWaitMs: 400 });
    await expect(driver.claim(SHAPE, never)).rejects.toMatchObject({
      code: 'SANDBOX_CAPACITY',
      message: expect.stringContaining('exceeded quota'),
    });
    expect(driver.figures().default?.creations).toBeLessThan(10);
    cluster.refuse = null;
    await ready(driver, 2);
  });

  it('replaces the pods of a dead controller', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 3, max: 8 });
    await ready(driver, 3);
    for (const pod of cluster.pods.values()) cluster.end(pod);
    await until(() => cluster.creations === 6 && cluster.pods.size === 3, { what: 'the ended pods to be deleted' });
    await ready(driver, 3);
    expect(cluster.creations).toBe(6);
  });

  it('reports the loss of a claimed pod', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 1, max: 4 });
    const sandbox = await driver.claim(SHAPE, never);
    for (const pod of cluster.pods.values()) if (pod.owner) cluster.end(pod);
    expect(await sandbox.lost).toMatchObject({ exit: 'infra' });
  });

  it('keeps a claim over a new connection after the old one broke or fell silent', async () => {
    const cluster = new SimulatedCluster();
    const driver = driverOf(cluster, { free: 0, max: 1 }, () => 0, { leaseRenewMs: 20 });
    const sandbox = await driver.claim(SHAPE, never);
    const pod = [...cluster.pods.values()][0];
    for (const cut of [() => pod?.links.forEach((link) => link.abandon()), () => (cluster.silent = true)]) {
      const [before] = pod?.links ?? [];
      cut();
      await until(() => pod?.links.size === 1 && !pod.links.has(before as never), { what: 'another connection' });
      cluster.silent = false;
    }
    expect(await Promise.race([sandbox.lost, Promise.resolve('not lost')])).toBe('not lost');
    await sandbox.release();
  });

  it('refuses unknown templates and too large sizes', async () => {
    const driver = driverOf(new SimulatedCluster(), { free: 0, max: 1 });
    await expect(driver.claim({ ...SHAPE, template: 'gpu' }, never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(driver.claim({ ...SHAPE, memoryMiB: 100_000 }, never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { field: 'limits.memory_mib' },
    });
  });
});

describe('three controllers of one pool', () => {
  it('fill it once', async () => {
    const cluster = new SimulatedCluster();
    const drivers = [1, 2, 3].map(() => driverOf(cluster, { free: 6, max: 12 }));
    await Promise.all(drivers.map((driver) => ready(driver, 6)));
    expect(cluster.pods.size).toBe(6);
  });

  it('never share a pod and never exceed the maximum', async () => {
    const plan = record({
      claims: integer({ min: 5, max: 40 }),
      max: integer({ min: 2, max: 12 }),
      late: integer({ min: 0, max: 60 }),
      deaths: integer({ min: 0, max: 6 }),
      seed: integer({ min: 1, max: 1_000 }),
    });
    await assert(
      asyncProperty(plan, async ({ claims, max, late, deaths, seed }) => {
        const cluster = new SimulatedCluster();
        let state = seed;
        const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
        const drivers = [1, 2, 3].map(() => driverOf(cluster, { free: Math.min(4, max), max }, () => random(late + 1)));
        const use = async (n: number) => {
          await sleep(random(100));
          const sandbox = await drivers[n % 3]?.claim(SHAPE, never);
          await sleep(random(20));
          await sandbox?.release();
        };
        const die = async () => {
          await sleep(random(150));
          const pods = [...cluster.pods.values()];
          const pod = pods[random(Math.max(1, pods.length))];
          if (pod) cluster.end(pod);
        };
        await Promise.all([...Array.from({ length: claims }, (_, n) => use(n)), ...Array.from({ length: deaths }, die)]);
        expect(cluster.mostPods).toBeLessThanOrEqual(max);
        expect(new Set(cluster.bound).size).toBe(cluster.bound.length);
        await Promise.all(drivers.map((driver) => driver.close()));
      }),
      { numRuns: 12 },
    );
  });
});
