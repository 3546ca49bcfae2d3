import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { until } from '@etude/test-support/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { breaking, cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { claimFree, claimOnce, counted, counting, ENDLESS, execute, full, refusal, startDriver } from './watched-executions.js';

const EATING = 'import time\nprint("so far", flush=True)\nx = []\nwhile True:\n    x.append(b"x" * (1 << 20))\n    time.sleep(0.2)';

/** Time for the status of an ended pod. A busy node reports it late. */
const EXPLAIN_MS = 10_000;

describe('a node that fails', () => {
  const test = cluster();
  const broken = breaking(test);
  const namespace = useNamespace(test, 'node-failures');
  /** One driver for all tests. It survives all failures. */
  let driver: KubernetesDriver;

  beforeAll(async () => {
    const settings = { claimWaitMs: 3_000, bindTimeoutMs: 20_000, explainMs: EXPLAIN_MS };
    driver = await startDriver(test, namespace(), { template: { warm: { free: 2, max: 8 } }, settings });
  });

  beforeEach(() => full(driver, 2));

  afterEach(async () => {
    await test.faults?.startKubelet(); // no effect on a running kubelet
  });

  afterAll(() => driver?.close());

  const node = (path: string) => test.kubectl(['get', 'node', 'node1', '-o', `jsonpath=${path}`]);

  it(
    'reports oomkilled with the output when the kernel ends the whole pod',
    broken(async ({ exhaustMemory }) => {
      const execution = await execute(driver, EATING);
      const from = performance.now();
      await exhaustMemory(execution.pod.uid, 8);
      const told = await execution.result;
      expect(told).toMatchObject({ exit: 'oomkilled', stdout: 'so far\n' });
      expect(told.error?.message).toContain('the kernel killed the container sandbox: its pod used more memory than its limit');
      // The code allocates 5 MiB a second. The pod's status then has the reason.
      expect(performance.now() - from).toBeLessThan(20_000);
    }),
  );

  it(
    'reports kernel_lost with the output when process 1 is killed',
    broken(async ({ killSupervisor }) => {
      const execution = await execute(driver, ENDLESS);
      const from = performance.now();
      killSupervisor(execution.pod.uid);
      const told = await execution.result;
      expect(told).toMatchObject({ exit: 'kernel_lost', stdout: 'so far\n' });
      expect(told.error?.message).toMatch(/the supervisor, process 1 of the pod, ended with (exit code 137|signal 9)/);
      expect(performance.now() - from).toBeLessThan(10_000);
    }),
  );

  it(
    'reports evicted with the output when the kubelet lacks memory',
    broken(async ({ pressNode, relieveNode }) => {
      const execution = await execute(driver, ENDLESS);
      await pressNode();
      const from = performance.now();
      try {
        const told = await execution.result;
        expect(told).toMatchObject({ exit: 'evicted', stdout: 'so far\n' });
        expect(told.error?.message).toMatch(/The node was low on resource: memory/);
        // The kubelet checks every 10 s and evicts one pod each time.
        expect(performance.now() - from).toBeLessThan(60_000);
      } finally {
        await relieveNode();
      }
      await until(async () => !(await node('{.spec.taints}')).includes('memory-pressure'), {
        what: 'the node without pressure',
      });
      await full(driver, 2);
    }),
  );

  it(
    'continues executions while the kubelet is stopped and reports capacity beyond the pool',
    broken(async ({ stopKubelet, startKubelet }) => {
      const execution = await execute(driver, counting(150));
      await full(driver, 2);
      await stopKubelet();
      // No pod starts any more, so claims get only the pool's pods.
      await claimFree(driver);
      expect(await refusal(driver)).toMatchObject({ code: 'SANDBOX_CAPACITY' });
      await until(async () => (await node('{.status.conditions[?(@.type=="Ready")].status}')) === 'Unknown', {
        everyMs: 500,
        what: 'the loss of the node',
      });
      expect(await execution.result).toMatchObject(counted(150));
      await startKubelet();
      await full(driver, 2);
      await claimOnce(driver);
    }),
  );

  it(
    'reports node_lost with the output when the node does not report any more',
    broken(async (faults) => {
      const execution = await execute(driver, ENDLESS);
      const from = performance.now();
      await Promise.all([faults.stopKubelet(), faults.cutPodNetwork(execution.pod.ip)]);
      onTestFinished(() => faults.healPodNetwork(execution.pod.ip));
      const told = await execution.result;
      expect(told).toMatchObject({ exit: 'node_lost', stdout: 'so far\n' });
      expect(told.error?.message).toContain('the node node1 does not report any more');
      // Two pings without a response, the lease, and the time for the pod's status.
      expect(performance.now() - from).toBeLessThan(10_000 + 15_000 + EXPLAIN_MS + 5_000);
      await faults.startKubelet();
      await full(driver, 2);
    }),
  );
});
