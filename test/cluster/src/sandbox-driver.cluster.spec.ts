import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { SHAPE, startDriver } from './watched-executions.js';

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
});
