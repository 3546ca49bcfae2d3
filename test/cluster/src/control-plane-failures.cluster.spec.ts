import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { until } from '@etude/test-support/until';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { breaking, cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { claimFree, claimOnce, counted, counting, execute, full, refusal, startDriver } from './watched-executions.js';

const FREE = 3;
/** Lines of an execution that takes 12 s. */
const COUNT = 120;

const followed = (driver: { check(): void }) => {
  try {
    driver.check();
    return true;
  } catch {
    return false;
  }
};

describe('a control plane that fails', () => {
  const test = cluster();
  const broken = breaking(test);
  const namespace = useNamespace(test, 'control-plane');
  /** One for all tests: it lives through all failures. */
  let driver: KubernetesDriver;

  beforeAll(async () => {
    const settings = { claimWaitMs: 3_000, bindTimeoutMs: 20_000 };
    driver = await startDriver(test, namespace(), { template: { warm: { free: FREE, max: 10 } }, settings });
  });

  afterEach(async () => {
    // Nothing happens where they run.
    await test.faults?.startContainerd();
    await test.faults?.startApiServer();
  });

  afterAll(async () => {
    await driver?.close();
    await test.faults?.settle();
  });

  /** A full pool, and an execution that runs through it all. */
  const running = async () => {
    await full(driver, FREE);
    const execution = await execute(driver, counting(COUNT));
    await full(driver, FREE);
    return execution;
  };
  /** As many as are free; with nobody there to make pods, they are the pool's. */
  const claimAll = async () => {
    await claimFree(driver);
  };

  it(
    'stops neither executions nor claims when the API server dies, and the pool is filled when it is back',
    broken(async (faults) => {
      const execution = await running();
      await faults.killApiServer();
      await until(() => !followed(driver), { what: 'word that the pods are not followed' });
      await claimAll();
      await faults.startApiServer();
      await full(driver, FREE);
      expect(followed(driver)).toBe(true);
      expect(await execution.result).toMatchObject(counted(COUNT));
    }),
  );

  it(
    'stops neither executions nor claims when the API server is restarted',
    broken(async ({ restartApiServer }) => {
      const execution = await running();
      const order: string[] = [];
      const restarted = restartApiServer().then(() => order.push('restarted'));
      await claimAll();
      order.push('claimed');
      await restarted;
      expect(order).toEqual(['claimed', 'restarted']);
      await full(driver, FREE);
      expect(await execution.result).toMatchObject(counted(COUNT));
    }),
  );

  it(
    'tells capacity beyond the pool while the API server is silent, and serves again when it speaks',
    broken(async (faults) => {
      const execution = await running();
      await faults.pauseApiServer();
      try {
        await claimAll();
        expect(await refusal(driver)).toMatchObject({ code: 'SANDBOX_CAPACITY' });
      } finally {
        await faults.resumeApiServer();
      }
      await full(driver, FREE);
      await claimOnce(driver);
      expect(await execution.result).toMatchObject(counted(COUNT));
    }),
  );

  it(
    'stops neither executions nor claims when containerd is stopped, and starts pods when it is back',
    broken(async (faults) => {
      const execution = await running();
      await faults.stopContainerd();
      await claimAll();
      await faults.startContainerd();
      await full(driver, FREE);
      await claimOnce(driver);
      expect(await execution.result).toMatchObject(counted(COUNT));
    }),
  );
});
