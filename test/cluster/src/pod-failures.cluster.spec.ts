import { errorCode } from '@etude/contracts/errors';
import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';
import { claimOnce, ENDLESS, execute, SHAPE, startDriver, type DriverOptions, type WatchedExecution } from './watched-executions.js';

const never = new AbortController().signal;

/** true: a claim is served. */
const claims = (driver: KubernetesDriver) =>
  claimOnce(driver).then(
    () => true,
    () => false,
  );

/** What a claim is told that gets no pod, and when. */
async function refusal(driver: KubernetesDriver) {
  const from = performance.now();
  const error = await driver.claim(SHAPE, never).then(
    () => expect.unreachable('the claim was served'),
    (reason: Error & { details?: { metadata?: Record<string, string> } }) => reason,
  );
  return { code: errorCode(error), exit: error.details?.metadata?.exit, message: error.message, tookMs: performance.now() - from };
}

/** What is told of one pod while the cluster is sound. */
describe('a pod that fails', () => {
  const test = cluster();
  let namespace = '';
  /** Lives through all failures of single pods. */
  let lasting: KubernetesDriver | null = null;
  const kubectl = (...args: string[]) => test.kubectl(['-n', namespace, ...args]);

  beforeAll(async () => {
    namespace = await makeNamespace(test, 'pod-failures');
  });

  afterAll(async () => {
    await lasting?.close();
    await test.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });

  const start = async (options: DriverOptions, where = namespace) => {
    const started = await startDriver(test, where, options);
    onTestFinished(() => started.close());
    return started;
  };

  /** What the caller gets of an execution whose pod fails under it, and how long after the failure. */
  async function failing(fail: (execution: WatchedExecution) => Promise<unknown>) {
    lasting ??= await startDriver(test, namespace, { template: { warm: { free: 1, max: 4 } } });
    const execution = await execute(lasting, ENDLESS);
    const from = performance.now();
    await fail(execution);
    const { exit, stdout, error } = await execution.result;
    return { exit, stdout, message: error?.message ?? '', tookMs: performance.now() - from };
  }

  it.each([
    // At once: nobody waits for it.
    ['Never', 'ErrImageNeverPull', 60_000],
    // Refused connections may pass, so it is waited for as long as a claim waits.
    ['IfNotPresent', 'ErrImagePull|ImagePullBackOff', 5_000],
  ])('is told as image_pull where its image is missing and pulled %s', async (imagePullPolicy, reason, claimWaitMs) => {
    const driver = await start({
      template: { image: '127.0.0.1:1/none:1', imagePullPolicy, warm: { free: 0, max: 2 } },
      settings: { claimWaitMs },
    });
    const told = await refusal(driver);
    expect(told).toMatchObject({ code: 'SANDBOX_UNAVAILABLE', exit: 'image_pull', message: expect.stringMatching(reason) });
    expect(told.message).toContain('127.0.0.1:1/none:1');
    expect(told.tookMs).toBeLessThan(60_000);
  });

  it('is told as capacity where no node takes it', async () => {
    const driver = await start({
      template: { nodeSelector: { 'etude.dev/no-such': 'node' }, warm: { free: 0, max: 2 } },
      settings: { claimWaitMs: 3_000 },
    });
    const told = await refusal(driver);
    expect(told).toMatchObject({ code: 'SANDBOX_CAPACITY', exit: 'capacity' });
    expect(told.message).toMatch(/no node can take the pod \(Unschedulable\): .*didn't match Pod's node affinity\/selector/);
  });

  it('is told as capacity where the quota is full, and comes once there is room', async () => {
    const full = await makeNamespace(test, 'quota');
    onTestFinished(() => void test.kubectl(['delete', 'namespace', full, '--wait=false']));
    await test.kubectl(['-n', full, 'create', 'quota', 'full', '--hard=pods=0']);
    await until(async () => (await test.kubectl(['-n', full, 'get', 'quota', 'full', '-o', 'jsonpath={.status.hard}'])) !== '');
    const settings = { backoffMs: 200, backoffMaxMs: 400, claimWaitMs: 60_000 };
    const driver = await start({ template: { warm: { free: 0, max: 2 } }, settings }, full);
    const told = await refusal(driver);
    expect(told).toMatchObject({ code: 'SANDBOX_CAPACITY', exit: 'capacity', message: expect.stringContaining('exceeded quota: full') });
    expect(told.tookMs).toBeLessThan(settings.claimWaitMs);
    await test.kubectl(['-n', full, 'delete', 'quota', 'full']);
    await until(() => claims(driver), { everyMs: 200, what: 'a pod once there is room' });
  });

  it('is told as capacity, not as a time-out, beyond the pool', async () => {
    const driver = await start({ template: { warm: { free: 1, max: 1 } }, settings: { claimWaitMs: 3_000, waitingMax: 2 } });
    // The first claim tries the walls of a pod where the start could not.
    await until(() => claims(driver), { everyMs: 100, what: 'a claim' });
    await until(() => driver.figures().default?.free === 1, { what: 'the pod of the pool' });
    await execute(driver, ENDLESS);
    const before: number[] = [];
    const told: string[] = [];
    const waiting = ['first', 'second'].map((name) =>
      driver
        .claim(SHAPE, never, (position) => before.push(position))
        .catch((error: unknown) => error)
        .finally(() => told.push(name)),
    );
    const tooMany = await refusal(driver);
    expect(tooMany).toMatchObject({ code: 'SANDBOX_CAPACITY', exit: 'capacity' });
    expect(told).toEqual([]); // those before it still wait
    expect(before).toEqual([0, 1]);
    for (const error of await Promise.all(waiting)) {
      expect(error).toMatchObject({ code: 'SANDBOX_CAPACITY', details: { metadata: { exit: 'capacity', limit: '1' } } });
      expect((error as Error).message).toMatch(/none of at most 1 sandboxes .* became free/);
      expect((error as Error).message).not.toMatch(/time-?out|timed out/i);
    }
  });

  it.each([
    ['with grace', []],
    ['at once', ['--force', '--grace-period=0']],
  ])('is told as evicted with its partial output when somebody deletes it %s', async (_how, flags) => {
    const told = await failing(({ pod }) => kubectl('delete', 'pod', pod.pod, '--wait=false', ...flags));
    expect(told).toMatchObject({ exit: 'evicted', stdout: 'so far\n', message: expect.stringContaining('was deleted by somebody else') });
    expect(told.tookMs).toBeLessThan(10_000);
  });

  it('is told as evicted with its partial output when its node is drained', async () => {
    const told = await failing(({ pod }) => {
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod.pod, namespace } };
      const path = `/api/v1/namespaces/${namespace}/pods/${pod.pod}/eviction`;
      return test.kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
    });
    expect(told).toMatchObject({ exit: 'evicted', stdout: 'so far\n', message: expect.stringMatching(/evict/i) });
    expect(told.tookMs).toBeLessThan(10_000);
  });
});
