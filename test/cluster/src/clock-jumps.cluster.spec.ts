import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { claimOnce, counted, counting, execute, full, startDriver } from './watched-executions.js';

const DAY_MS = 24 * 3_600_000;

/** A test can't set the machine's clock. libs/sandbox/test/supervisor-claims.int.spec.ts tests jumps of the supervisor's clock. */
describe("a controller's clock that jumps", () => {
  const test = cluster();
  const namespace = useNamespace(test, 'clock');

  it('ten days ahead and back harms no execution, claim or lease', async () => {
    const settings = { leaseMs: 8_000, leaseRenewMs: 1_000 };
    const driver = await startDriver(test, namespace(), { template: { warm: { free: 2, max: 6 } }, settings });
    onTestFinished(() => driver.close());
    await full(driver, 2);
    const execution = await execute(driver, counting(150));
    const began = Date.now();
    onTestFinished(() => void vi.useRealTimers());
    for (const days of [10, -10]) {
      vi.useFakeTimers({ toFake: ['Date'], now: began + days * DAY_MS });
      await full(driver, 2);
      await claimOnce(driver);
    }
    // The execution takes longer than its lease, so the lease was renewed after the jumps.
    expect(await execution.result).toMatchObject(counted(150));
    await full(driver, 2);
    driver.check();
  });
});
