import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { execute, SHAPE, startDriver } from './watched-executions.js';

const never = new AbortController().signal;

describe('KubernetesDriver on a real cluster', () => {
  const test = cluster();
  const namespace = useNamespace(test, 'driver');
  const start = async (): Promise<KubernetesDriver> => {
    const driver = await startDriver(test, namespace(), { installation: 'shared', template: { warm: { free: 1, max: 4 } } });
    onTestFinished(() => driver.close());
    return driver;
  };

  it('keeps files, and lets another controller attach to them', async () => {
    const [driver, other] = [await start(), await start()];
    const sandbox = await driver.claim(SHAPE, never);
    await sandbox.files.write('a/b.txt', 0, Buffer.from('kept'), true);
    const attached = await other.attach(sandbox.place ?? '', never);
    expect(await sandbox.lost).toMatchObject({ message: expect.stringContaining('taken over') });
    expect(Buffer.from((await attached.files.read('a/b.txt', 0, 100)).data).toString()).toBe('kept');
    await attached.release();
    await expect(driver.attach(sandbox.place ?? '', never)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });

  it('runs each sandbox as a user that no other sandbox of the node has', async () => {
    const [driver, other] = [await start(), await start()];
    const code = 'import os, time\nprint(os.getuid(), open("/proc/self/uid_map").read(), flush=True)\ntime.sleep(100)';
    const executions = await Promise.all([driver, driver, other].map((one) => execute(one, code)));
    const users = executions.map((execution) => execution.printed().trim());
    for (const user of users) expect(user).toMatch(/^[1-9]\d{5,} +0 +0 +4294967295$/);
    expect(new Set(users).size).toBe(3);
  });
});
