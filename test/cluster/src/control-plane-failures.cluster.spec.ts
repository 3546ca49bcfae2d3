import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
  /** One driver for all tests. It survives all failures. */
  let driver: KubernetesDriver;

  beforeAll(async () => {
    const settings = { claimWaitMs: 3_000, bindTimeoutMs: 20_000 };
    driver = await startDriver(test, namespace(), { template: { warm: { free: FREE, max: 10 } }, settings });
  });

  afterAll(async () => {
    await driver?.close();
    await test.faults?.settle();
  });

  it.for([
    ['the API server dies', 'killApiServer', 'startApiServer', 'SANDBOX_UNAVAILABLE'],
    ['the API server is silent', 'pauseApiServer', 'resumeApiServer', 'SANDBOX_CAPACITY'],
    ['containerd is stopped', 'stopContainerd', 'startContainerd', 'SANDBOX_CAPACITY'],
  ] as const)('stops neither executions nor claims when %s, and serves again when it is back', ([, fail, heal, code], context) =>
    broken(async (faults) => {
      await full(driver, FREE);
      const execution = await execute(driver, counting(COUNT));
      await full(driver, FREE);
      await faults[fail]();
      try {
        if (fail === 'killApiServer') await until(() => !followed(driver), { what: 'word that the pods are not followed' });
        await claimFree(driver);
        expect(await refusal(driver)).toMatchObject({ code });
      } finally {
        await faults[heal]();
      }
      await full(driver, FREE);
      await claimOnce(driver);
      expect(followed(driver)).toBe(true);
      expect(await execution.result).toMatchObject(counted(COUNT));
    })(context),
  );
});
