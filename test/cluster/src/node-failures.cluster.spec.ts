import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { until } from '@etude/test-support/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { breaking, cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { claimFree, claimOnce, counted, counting, ENDLESS, execute, full, refusal, startDriver } from './watched-executions.js';

const EATING = 'import time\nprint("so far", flush=True)\nx = []\nwhile True:\n    x.append(b"x" * (1 << 20))\n    time.sleep(0.2)';

/** For the status of a pod, which tells why it ended: a busy node reports it late. */
const EXPLAIN_MS = 10_000;

describe('a node that fails', () => {
  const test = cluster();
  const broken = breaking(test);
  const namespace = useNamespace(test, 'node-failures');
  /** One for all tests: it lives through all failures. */
  let driver: KubernetesDriver;

  beforeAll(async () => {
    const settings = { claimWaitMs: 3_000, bindTimeoutMs: 20_000, explainMs: EXPLAIN_MS };
    driver = await startDriver(test, namespace(), { template: { warm: { free: 2, max: 8 } }, settings });
  });

  beforeEach(() => full(driver, 2));

  afterEach(async () => {
    await test.faults?.startKubelet(); // nothing happens where it runs
  });

  afterAll(() => driver?.close());

  const node = (path: string) => test.kubectl(['get', 'node', 'node1', '-o', `jsonpath=${path}`]);

  it(
    'tells oomkilled where the kernel ends the whole pod, with what was printed',
    broken(async ({ exhaustMemory }) => {
      const execution = await execute(driver, EATING);
      const from = performance.now();
      await exhaustMemory(execution.pod.uid, 8);
      const told = await execution.result;
      expect(told).toMatchObject({ exit: 'oomkilled', stdout: 'so far\n' });
      expect(told.error?.message).toContain('the kernel killed the container sandbox: its pod used more memory than its limit');
      // It takes 40 bytes of a MiB each to get there, and the status of the pod to tell.
      expect(performance.now() - from).toBeLessThan(20_000);
    }),
  );

  it(
    'tells kernel_lost where process 1 is killed, with what was printed',
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
    'tells evicted where the kubelet lacks memory, with what was printed',
    broken(async ({ pressNode, relieveNode }) => {
      const execution = await execute(driver, ENDLESS);
      await pressNode();
      const from = performance.now();
      try {
        const told = await execution.result;
        expect(told).toMatchObject({ exit: 'evicted', stdout: 'so far\n' });
        expect(told.error?.message).toMatch(/The node was low on resource: memory/);
        // The kubelet looks every 10 s, and evicts one pod each time.
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
    'goes on with what runs while the kubelet is stopped, and tells capacity beyond the pool',
    broken(async ({ stopKubelet, startKubelet }) => {
      const execution = await execute(driver, counting(150));
      await full(driver, 2);
      await stopKubelet();
      // No pod starts any more: these are the pool's.
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
    'tells node_lost where nothing of the node is heard any more, with what was printed',
    broken(async (faults) => {
      const execution = await execute(driver, ENDLESS);
      const from = performance.now();
      await Promise.all([faults.stopKubelet(), faults.cutPodNetwork(execution.pod.ip)]);
      onTestFinished(() => faults.healPodNetwork(execution.pod.ip));
      const told = await execution.result;
      expect(told).toMatchObject({ exit: 'node_lost', stdout: 'so far\n' });
      expect(told.error?.message).toContain('the node node1 does not report any more');
      // Two pings without an answer, as long as the lease may last, and the time for the pod's status.
      expect(performance.now() - from).toBeLessThan(10_000 + 15_000 + EXPLAIN_MS + 5_000);
      await faults.startKubelet();
      await full(driver, 2);
    }),
  );
});
