import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';
import { claimOnce, counted, counting, execute, startDriver } from './watched-executions.js';

const DAY_MS = 24 * 3_600_000;

/** A machine's own clock can't be set in a test; the supervisor's is in libs/sandbox/src/supervisor-clock.int.spec.ts. */
describe("a controller's clock that jumps", () => {
  const test = cluster();
  let namespace = '';

  beforeAll(async () => {
    namespace = await makeNamespace(test, 'clock');
  });

  afterAll(() => test.kubectl(['delete', 'namespace', namespace, '--wait=false']));

  it.each([
    ['ahead', 10],
    ['back', -10],
  ])('ten days %s costs no execution, no claim and no lease anything', async (_where, days) => {
    const driver = await startDriver(test, namespace, {
      template: { warm: { free: 2, max: 6 } },
      settings: { leaseMs: 8_000, leaseRenewMs: 1_000 },
    });
    onTestFinished(() => driver.close());
    const full = () => until(() => driver.figures().default?.free === 2, { what: 'a full pool' });
    await full();
    const execution = await execute(driver, counting(120));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * DAY_MS });
    onTestFinished(() => void vi.useRealTimers());
    await full();
    await claimOnce(driver);
    // Longer than its lease: it was renewed after the jump.
    expect(await execution.result).toMatchObject({ exit: 'ok', stdout: counted(120) });
    await full();
    driver.check();
  });
});
