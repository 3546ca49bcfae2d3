import type { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { readPlace } from '@etude/sandbox/kubernetes/pod-identity';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { SHAPE, startDriver } from './watched-executions.js';

const never = new AbortController().signal;

describe('KubernetesDriver on a real cluster', () => {
  const test = cluster();
  const namespace = useNamespace(test, 'driver');
  const start = async (installation: string, warm: object): Promise<KubernetesDriver> => {
    const driver = await startDriver(test, namespace(), { installation, template: { warm } });
    onTestFinished(() => driver.close());
    return driver;
  };
  const pods = async (selector: string) =>
    (await test.kubectl(['get', 'pods', '-n', namespace(), '-l', selector, '-o', 'name'])).trim().split('\n').filter(Boolean);

  it('labels a claimed pod and deletes it after its release', async () => {
    const driver = await start('one', { free: 1, max: 3 });
    const sandbox = await driver.claim(SHAPE, never);
    const claimed = `pod/${readPlace(sandbox.place ?? '').pod}`;
    await until(async () => (await pods('etude.dev/state=claimed')).join() === claimed, { what: 'the claim to be told' });
    await sandbox.release();
    await expect.poll(() => pods('etude.dev/state=claimed'), { timeout: 60_000 }).toEqual([]);
  });

  it('keeps files, and lets another controller attach to them', async () => {
    const [driver, other] = [await start('shared', { free: 1, max: 4 }), await start('shared', { free: 1, max: 4 })];
    const sandbox = await driver.claim(SHAPE, never);
    await sandbox.files.write('a/b.txt', 0, Buffer.from('kept'), true);
    const attached = await other.attach(sandbox.place ?? '', never);
    expect(await sandbox.lost).toMatchObject({ message: expect.stringContaining('taken over') });
    expect(Buffer.from((await attached.files.read('a/b.txt', 0, 100)).data).toString()).toBe('kept');
    await attached.release();
    await expect(driver.attach(sandbox.place ?? '', never)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });
});
