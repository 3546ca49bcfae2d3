import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { breaking, cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { claimOnce, counted, counting, ENDLESS, execute, full, startDriver, type DriverOptions } from './watched-executions.js';

describe('a network that fails between controller and pod', () => {
  const test = cluster();
  const broken = breaking(test);
  const namespace = useNamespace(test, 'network-failures');

  const start = async (options: DriverOptions) => {
    const driver = await startDriver(test, namespace(), options);
    onTestFinished(() => driver.close());
    return driver;
  };
  const pods = async () => {
    const listed = await test.kubectl(['-n', namespace(), 'get', 'pods', '-o', 'json']);
    return (JSON.parse(listed) as { items: Array<{ metadata: { name: string; uid: string }; status: { podIP?: string } }> }).items;
  };

  it(
    'harms no execution when cut for less than the lease',
    broken(async ({ cutPodNetwork, healPodNetwork }) => {
      const heard: string[] = [];
      const settings = { leaseMs: 15_000, leaseRenewMs: 1_000 };
      const driver = await start({ template: { warm: { free: 1, max: 4 } }, settings, hear: (message) => heard.push(message) });
      const execution = await execute(driver, counting(100));
      await cutPodNetwork(execution.pod.ip);
      await sleep(5_000); // the fault itself: longer than the two pings after which the controller closes the connection
      const during = execution.printed();
      await healPodNetwork(execution.pod.ip);
      expect(await execution.result).toMatchObject(counted(100));
      expect(during.length).toBeLessThan(counted(100).stdout.length);
      expect(heard).toContain('connected to a claimed sandbox pod again');
    }),
  );

  it(
    'ends an execution as infra when cut for longer, and the pod with its lease',
    broken(async ({ cutPodNetwork, healPodNetwork }) => {
      const settings = { leaseMs: 5_000, leaseRenewMs: 1_000, explainMs: 15_000 };
      const driver = await start({ template: { warm: { free: 1, max: 4 } }, settings });
      const execution = await execute(driver, ENDLESS);
      const from = performance.now();
      await cutPodNetwork(execution.pod.ip);
      onTestFinished(() => healPodNetwork(execution.pod.ip));
      const told = await execution.result;
      expect(told).toMatchObject({ exit: 'infra', stdout: 'so far\n' });
      expect(told.error?.message).toBe('the supervisor exited: its lease expired, or it received a close request');
      // Two pings, the lease, and 3 s for the status of the pod.
      expect(performance.now() - from).toBeLessThan(2_000 + 5_000 + 3_000 + 5_000);
      await until(async () => (await pods()).every(({ metadata }) => metadata.uid !== execution.pod.uid), {
        everyMs: 100,
        what: 'the end of the pod',
      });
    }),
  );

  it(
    'delays a claim by a second for each unreachable pod',
    broken(async ({ cutPodNetwork, healPodNetwork }) => {
      const driver = await start({ template: { warm: { free: 3, max: 8 } } });
      await full(driver, 3);
      const [first, second] = (await pods()).flatMap(({ status }) => status.podIP ?? []);
      for (const ip of [first, second]) {
        await cutPodNetwork(ip ?? '');
        onTestFinished(() => healPodNetwork(ip ?? ''));
      }
      for (let i = 0; i < 2; i += 1) {
        const from = performance.now();
        await claimOnce(driver);
        expect(performance.now() - from).toBeLessThan(2 * 1_000 + 1_000);
      }
    }),
  );
});
