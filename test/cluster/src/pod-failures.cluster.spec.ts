import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { until } from '@etude/test-support/until';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { cluster } from './cluster.js';
import { makeNamespace, useNamespace } from './pod-namespace.js';
import { claimOnce, ENDLESS, execute, refusal, startDriver, type DriverOptions, type WatchedExecution } from './watched-executions.js';

/** How callers see the failure of one pod in a healthy cluster. */
describe('a pod that fails', () => {
  const test = cluster();
  const namespace = useNamespace(test, 'pod-failures');
  /** Survives the failures of single pods. */
  let lasting: KubernetesDriver | null = null;
  const kubectl = (...args: string[]) => test.kubectl(['-n', namespace(), ...args]);

  afterAll(() => lasting?.close());

  const start = async (options: DriverOptions, where = namespace()) => {
    const started = await startDriver(test, where, options);
    onTestFinished(() => started.close());
    return started;
  };

  /** The result of an execution whose pod fails, and the time from the failure to the result. */
  async function failing(fail: (execution: WatchedExecution) => Promise<unknown>) {
    lasting ??= await startDriver(test, namespace(), { template: { warm: { free: 1, max: 4 } } });
    const execution = await execute(lasting, ENDLESS);
    const from = performance.now();
    await fail(execution);
    const { exit, stdout, error } = await execution.result;
    return { exit, stdout, message: error?.message ?? '', tookMs: performance.now() - from };
  }

  it.each([
    ['Never', 'ErrImageNeverPull'],
    ['IfNotPresent', 'ErrImagePull|ImagePullBackOff'],
  ])('is reported as image_pull when its image is missing and pulled %s', async (imagePullPolicy, reason) => {
    const driver = await start({
      template: { image: '127.0.0.1:1/none:1', imagePullPolicy, warm: { free: 0, max: 2 } },
      settings: { claimWaitMs: 5_000 },
    });
    const told = await refusal(driver);
    expect(told).toMatchObject({ code: 'SANDBOX_UNAVAILABLE', exit: 'image_pull', message: expect.stringMatching(reason) });
    expect(told.message).toContain('127.0.0.1:1/none:1');
  });

  it('is reported as capacity when no node fits it', async () => {
    const driver = await start({
      template: { nodeSelector: { 'etude.dev/no-such': 'node' }, warm: { free: 0, max: 2 } },
      settings: { claimWaitMs: 3_000 },
    });
    const told = await refusal(driver);
    expect(told).toMatchObject({ code: 'SANDBOX_CAPACITY', exit: 'capacity' });
    expect(told.message).toMatch(/no node can take the pod \(Unschedulable\): .*didn't match Pod's node affinity\/selector/);
  });

  it('is reported as capacity when the quota is full, and starts once there is room', async () => {
    const full = await makeNamespace(test, 'quota');
    onTestFinished(() => void test.kubectl(['delete', 'namespace', full, '--wait=false']));
    await test.kubectl(['-n', full, 'create', 'quota', 'full', '--hard=pods=0']);
    await until(async () => (await test.kubectl(['-n', full, 'get', 'quota', 'full', '-o', 'jsonpath={.status.hard}'])) !== '');
    const settings = { backoffMs: 200, backoffMaxMs: 400, claimWaitMs: 5_000 };
    const driver = await start({ template: { warm: { free: 0, max: 2 } }, settings }, full);
    const told = await refusal(driver);
    expect(told).toMatchObject({ code: 'SANDBOX_CAPACITY', exit: 'capacity', message: expect.stringContaining('exceeded quota: full') });
    await test.kubectl(['-n', full, 'delete', 'quota', 'full']);
    const claims = () =>
      claimOnce(driver)
        .then(() => true)
        .catch(() => false);
    await until(claims, { everyMs: 200, what: 'a pod once there is room' });
  });

  const remove = ({ pod }: WatchedExecution, ...flags: string[]) => kubectl('delete', 'pod', pod.pod, '--wait=false', ...flags);
  const evict = ({ pod }: WatchedExecution) => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod.pod, namespace: namespace() } };
    const path = `/api/v1/namespaces/${namespace()}/pods/${pod.pod}/eviction`;
    return test.kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
  };

  it.each([
    ['somebody deletes it with grace', remove, /was deleted by somebody else/],
    ['somebody deletes it at once', (one: WatchedExecution) => remove(one, '--force', '--grace-period=0'), /was deleted by somebody else/],
    ['its node is drained', evict, /evict/i],
  ])('is reported as evicted, with its partial output, when %s', async (_how, fail, message) => {
    const told = await failing(fail);
    expect(told).toMatchObject({ exit: 'evicted', stdout: 'so far\n', message: expect.stringMatching(message) });
    expect(told.tookMs).toBeLessThan(10_000);
  });
});
