import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SandboxExecute } from '@etude/contracts/queues';
import { QueueSandboxes } from '@etude/queue/executions';
import { Producer } from '@etude/queue/producer';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { startRedis, type TestRedis } from '@etude/test-support/redis';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { breaking } from './breaking.js';
import { cluster } from './cluster.js';
import { root } from './settings.js';
import { ENDLESS, executionOf, makeNamespace, smallTemplates } from './watched-executions.js';

const never = new AbortController().signal;
const SLOW = 'import time\nprint("so far", flush=True)\ntime.sleep(4)\nprint("done")';
const LEASE_MS = 15_000;

interface Claimed {
  readonly name: string;
  readonly uid: string;
  readonly controller: string;
}

interface PodList {
  readonly items: ReadonlyArray<{
    readonly metadata: {
      readonly name: string;
      readonly uid: string;
      readonly labels: Record<string, string>;
      readonly deletionTimestamp?: string;
    };
    readonly status: { readonly phase: string };
  }>;
}

/** The caller of `sandbox.execute`, a Redis and controllers, all real and in processes of their own. */
describe('services that fail under an execution', () => {
  const test = cluster();
  const broken = breaking(test);
  let namespace = '';
  let redis: TestRedis;
  let dir = '';

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-service-failures-'));
    [namespace, redis] = await Promise.all([makeNamespace(test, 'services'), startRedis()]);
    await writeFile(join(dir, 'templates.yaml'), JSON.stringify(smallTemplates({ warm: { free: 1, max: 6 } })));
  });

  afterAll(async () => {
    await redis?.stop();
    await rm(dir, { recursive: true, force: true });
    await test.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });

  /** One installation with one controller, and its caller. */
  async function start() {
    const installation = `t${randomBytes(4).toString('hex')}`;
    const secret = randomBytes(16).toString('hex');
    const startController = (): Promise<TestProcess> =>
      startProcess({
        args: [join(root, 'apps/sandbox-controller/dist/main.js')],
        env: {
          ETUDE_LOG_LEVEL: 'warn',
          ETUDE_REDIS_URL: redis.url,
          ETUDE_QUEUE_PREFIX: installation,
          ETUDE_SANDBOX_DRIVER: 'kubernetes',
          ETUDE_SANDBOX_KUBECONFIG_PATH: test.kubeconfig,
          ETUDE_SANDBOX_NAMESPACE: namespace,
          ETUDE_SANDBOX_INSTALLATION: installation,
          ETUDE_SANDBOX_TOKEN_SECRET: secret,
          ETUDE_SANDBOX_TEMPLATES_PATH: join(dir, 'templates.yaml'),
        },
        timeoutMs: 60_000,
      }).then((controller) => {
        onTestFinished(async () => void (await controller.stop()));
        return controller;
      });
    const producer = new Producer(redis.url, installation);
    onTestFinished(() => producer.close());
    const sandboxes = new QueueSandboxes(producer);
    /** Pods that run, and that controllers have said to be claimed. */
    const claimed = async (): Promise<Claimed[]> => {
      const selector = `etude.dev/pool=${installation},etude.dev/state=claimed`;
      const listed = await test.kubectl(['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json']);
      return (JSON.parse(listed) as PodList).items
        .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === 'Running')
        .map(({ metadata: { name, uid, labels } }) => ({ name, uid, controller: labels['etude.dev/controller'] ?? '' }));
    };
    const attempts = async (executionId: string) => (await producer.queue(SandboxExecute.name).getJob(executionId))?.attemptsStarted;
    /** Begins an execution, and waits until a pod that was not known is claimed for it and runs it. */
    const begin = async (code: string) => {
      const request = executionOf(code);
      const running = sandboxes.execute(request, never).then(({ runs }) => runs);
      return { request, running, pod: await nextPod([]) };
    };
    const nextPod = async (known: readonly string[]) => {
      const unknown = async () => (await claimed()).find(({ uid }) => !known.includes(uid));
      return until(unknown, { timeoutMs: 30_000, everyMs: 100, what: 'a claimed pod' });
    };
    return { startController, controller: await startController(), sandboxes, begin, nextPod, claimed, attempts };
  }
  const deletePod = ({ name }: Claimed) => test.kubectl(['-n', namespace, 'delete', 'pod', name, '--wait=false']);

  it('give the caller one result when a controller is killed and another one takes its execution over', async () => {
    const { controller, startController, begin, sandboxes, claimed, attempts } = await start();
    const { request, running, pod } = await begin(SLOW);
    const other = startController();
    const from = performance.now();
    await controller.kill();
    expect(await running).toMatchObject([{ exit: 'ok', stdout: 'so far\ndone\n' }]);
    // Noticed by the queue within seconds, run again with its 4 s; the other controller was starting meanwhile.
    expect(performance.now() - from).toBeLessThan(30_000);
    await other;
    expect(await attempts(request.executionId)).toBe(2);
    // Asked for again, nothing runs again.
    expect((await sandboxes.execute(request, never)).runs).toEqual(await running);
    expect(await attempts(request.executionId)).toBe(2);
    // Nobody renews the lease of the pod that was left behind.
    await until(async () => (await claimed()).every(({ uid }) => uid !== pod.uid), {
      timeoutMs: LEASE_MS + 10_000,
      everyMs: 200,
      what: 'the end of the orphan',
    });
    expect(performance.now() - from).toBeLessThan(LEASE_MS + 5_000);
  });

  it('give the caller its result when Redis is restarted under it, and run its code once', async () => {
    const { begin, attempts } = await start();
    const { request, running } = await begin(SLOW);
    await redis.pause();
    await redis.resume();
    expect(await running).toMatchObject([{ exit: 'ok', stdout: 'so far\ndone\n' }]);
    expect(await attempts(request.executionId)).toBe(1);
  });

  it('run the code again in another pod when the infrastructure took its own away', async () => {
    const { begin, attempts } = await start();
    const { request, running, pod } = await begin(SLOW);
    await deletePod(pod);
    expect(await running).toMatchObject([{ exit: 'ok', stdout: 'so far\ndone\n' }]);
    expect(await attempts(request.executionId)).toBe(2);
  });

  it('say what happened, with what was printed, when it happens to every try', async () => {
    const { begin, nextPod, attempts } = await start();
    const { request, running, pod } = await begin(ENDLESS);
    const pods = [pod];
    for (let i = 0; i < SandboxExecute.attemptsMax; i += 1) {
      const next = pods[i] ?? (await nextPod(pods.map(({ uid }) => uid)));
      pods[i] = next;
      await new Promise((resolve) => setTimeout(resolve, 1_000)); // for its first line
      await deletePod(next);
    }
    expect(await running).toMatchObject([
      { exit: 'evicted', stdout: 'so far\n', error: { message: expect.stringContaining('deleted by somebody else') } },
    ]);
    expect(await attempts(request.executionId)).toBe(SandboxExecute.attemptsMax);
  });

  it(
    'try nothing again that is no fault of the infrastructure',
    broken(async ({ killSupervisor }) => {
      const { begin, attempts } = await start();
      const { request, running, pod } = await begin(ENDLESS);
      killSupervisor(pod.uid);
      expect(await running).toMatchObject([{ exit: 'kernel_lost' }]);
      expect(await attempts(request.executionId)).toBe(1);
    }),
  );
});
