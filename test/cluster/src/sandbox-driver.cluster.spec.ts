import { SandboxLimits, type SandboxRun } from '@etude/contracts/sandbox';
import { KubernetesDriver } from '@etude/sandbox/kubernetes/kubernetes-driver';
import { readPlace } from '@etude/sandbox/kubernetes/pod-identity';
import { SandboxTemplates } from '@etude/sandbox/kubernetes/sandbox-template';
import type { ClaimedSandbox } from '@etude/sandbox/sandbox-driver';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';

const never = new AbortController().signal;
const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: console.error };
const limits = SandboxLimits.parse({ memoryMiB: 64, diskMiB: 4 });
const SHAPE = { template: 'default', memoryMiB: 64, diskMiB: 4 };

let executions = 0;

async function run(sandbox: ClaimedSandbox, code: string, more: { executionId?: string; after?: number; keep?: boolean } = {}) {
  const told: string[] = [];
  const runs: SandboxRun[] = [{ kind: 'program', code, stdin: '' }];
  const executionId = `e${(executions += 1)}`;
  const sink = {
    output: (_run: number, _stream: string, text: string) => void told.push(text),
    display: () => undefined,
    result: (_run: number, result: { stdout: string }) => void told.push(result.stdout),
  };
  const end = await sandbox.execute({ executionId, tenant: 'acme', files: [], limits, stopOnFailure: false, runs, ...more }, sink, never);
  return { end, text: told.join('') };
}

describe('KubernetesDriver on a real cluster', () => {
  const test = cluster();
  const image = process.env['ETUDE_SANDBOX_IMAGE'] ?? '';
  let namespace = '';
  let driver: KubernetesDriver;

  const start = (installation: string, warm: object, more: object = {}, settings = {}) =>
    KubernetesDriver.start(
      {
        installation,
        tokenSecret: 'the secret of a test',
        alone: true,
        logger,
        settings,
        templates: SandboxTemplates.parse({ default: { image, cpuRequest: '5m', memoryMiB: 64, diskMiB: 4, warm, ...more } }),
      },
      { kubeconfigPath: test.kubeconfig, namespace },
      AbortSignal.timeout(60_000),
    );
  const claim = async (from = driver) => {
    const sandbox = await from.claim(SHAPE, never);
    onTestFinished(() => sandbox.release());
    return sandbox;
  };
  const pods = async (selector: string) =>
    (await test.kubectl(['get', 'pods', '-n', namespace, '-l', selector, '-o', 'name'])).trim().split('\n').filter(Boolean);

  beforeAll(async () => {
    namespace = await makeNamespace(test, 'driver');
    driver = await start('main', { free: 3, max: 12 });
  });

  afterAll(async () => {
    await driver?.close();
    await test.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });

  it('runs code in a pod that it claimed, and deletes the pod after it', async () => {
    const sandbox = await claim();
    expect(await run(sandbox, 'import os; print(os.getuid() > 99_999)')).toEqual({ end: { ended: 'done' }, text: 'True\n' });
    await sandbox.release();
    await until(async () => (await pods('etude.dev/state=claimed')).length === 0, { what: 'the claimed pod to be deleted' });
  });

  it('keeps files, and lets another controller attach to them', async () => {
    const sandbox = await driver.claim(SHAPE, never);
    await sandbox.files.write('a/b.txt', 0, Buffer.from('kept'), true);
    const other = await start('main', { free: 3, max: 12 });
    onTestFinished(() => other.close());
    const attached = await other.attach(sandbox.place ?? '', never);
    expect(await sandbox.lost).toMatchObject({ message: expect.stringContaining('taken over') });
    expect(Buffer.from((await attached.files.read('a/b.txt', 0, 100)).data).toString()).toBe('kept');
    await attached.release();
    await expect(driver.attach(sandbox.place ?? '', never)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });

  it('tells why a pod was lost, and hands over what it had printed', async () => {
    const sandbox = await claim();
    const running = run(sandbox, 'import time; print("so far", flush=True); time.sleep(60)');
    await test.kubectl(['delete', '-n', namespace, 'pod', readPlace(sandbox.place ?? '').pod, '--wait=false']);
    expect(await running).toMatchObject({ end: { ended: 'lost', exit: 'evicted' }, text: 'so far\n' });
  });

  it('lets a claimed pod end with its lease when its controller is gone', async () => {
    const other = await start('lease', { free: 1, max: 2 }, {}, { leaseMs: 10_000, leaseRenewMs: 600_000 });
    onTestFinished(() => other.close());
    const sandbox = await other.claim(SHAPE, never);
    expect(await sandbox.lost).toMatchObject({ ended: 'lost' });
  });

  it('says image_pull where the image is missing', async () => {
    const other = await start('missing', { free: 0, max: 2 }, { image: 'localhost/no-such-image:1', imagePullPolicy: 'Never' });
    onTestFinished(() => other.close());
    await expect(other.claim(SHAPE, never)).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      details: { metadata: { exit: 'image_pull' } },
    });
  });

  it('never gives one pod to two claims of three controllers', async () => {
    const drivers = await Promise.all([1, 2, 3].map(() => start('race', { free: 6, max: 8 })));
    onTestFinished(async () => void (await Promise.all(drivers.map((one) => one.close()))));
    await until(() => drivers.every((one) => one.figures().default?.free === 6), { timeoutMs: 150_000, what: 'a full pool' });
    const claims = await Promise.all(Array.from({ length: 8 }, (_, n) => drivers[n % 3]?.claim(SHAPE, never)));
    expect(new Set(claims.map((one) => JSON.parse(Buffer.from(one?.place ?? '', 'base64url').toString()).uid)).size).toBe(8);
    expect((await pods('etude.dev/pool=race')).length).toBeLessThanOrEqual(8);
    await Promise.all(claims.map((one) => one?.release()));
  });
});
