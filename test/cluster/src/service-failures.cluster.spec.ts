import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxExecute } from '@etude/contracts/queues';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { Producer } from '@etude/queue/jobs/producer';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { startRedis, type TestRedis } from '@etude/test-support/redis';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { breaking } from './breaking.js';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';
import { root } from './settings.js';
import { ENDLESS, executionOf, smallTemplates } from './watched-executions.js';

const never = new AbortController().signal;
/** Long enough for a test to see its claim and to fail something under it. */
const SLOW = 'import time\nprint("so far", flush=True)\ntime.sleep(12)\nprint("done")';

interface Claimed {
  readonly name: string;
  readonly uid: string;
}

interface PodList {
  readonly items: ReadonlyArray<{
    readonly metadata: Claimed & { readonly deletionTimestamp?: string };
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
  let producer: Producer;
  let sandboxes: QueueSandboxes;
  const installation = `t${randomBytes(4).toString('hex')}`;
  const secret = randomBytes(16).toString('hex');
  const controllers: TestProcess[] = [];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-service-failures-'));
    [namespace, redis] = await Promise.all([makeNamespace(test, 'services'), startRedis()]);
    await writeFile(join(dir, 'templates.yaml'), JSON.stringify(smallTemplates({ warm: { free: 1, max: 6 } })));
    producer = new Producer(redis.url, installation);
    sandboxes = new QueueSandboxes(producer);
    await startController();
  });

  afterAll(async () => {
    await producer?.close();
    await Promise.all(controllers.map((controller) => controller.stop()));
    await redis?.stop();
    await rm(dir, { recursive: true, force: true });
    await test.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  });

  async function startController(): Promise<void> {
    const env = {
      ETUDE_LOG_LEVEL: 'warn',
      ETUDE_REDIS_URL: redis.url,
      ETUDE_QUEUE_PREFIX: installation,
      ETUDE_SANDBOX_DRIVER: 'kubernetes',
      ETUDE_SANDBOX_KUBECONFIG_PATH: test.kubeconfig,
      ETUDE_SANDBOX_NAMESPACE: namespace,
      ETUDE_SANDBOX_INSTALLATION: installation,
      ETUDE_SANDBOX_TOKEN_SECRET: secret,
      ETUDE_SANDBOX_TEMPLATES_PATH: join(dir, 'templates.yaml'),
    };
    controllers.push(await startProcess({ args: [join(root, 'apps/sandbox-controller/dist/main.js')], env }));
  }

  /** Pods that run, and that controllers have said to be claimed. */
  async function claimed(): Promise<Claimed[]> {
    const selector = `etude.dev/pool=${installation},etude.dev/state=claimed`;
    const { items } = JSON.parse(await test.kubectl(['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json'])) as PodList;
    return items
      .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === 'Running')
      .map(({ metadata }) => metadata);
  }
  const claimedBeside = (known: readonly Claimed[]) =>
    until(async () => (await claimed()).find(({ uid }) => known.every((one) => one.uid !== uid)), {
      everyMs: 100,
      what: 'another claimed pod',
    });
  /** Begins an execution, and waits until a pod is claimed for it. */
  async function begin(code: string) {
    const known = await claimed();
    const request = executionOf(code);
    const running = sandboxes.execute(request, never).then(({ runs }) => runs);
    return { request, running, pod: await claimedBeside(known) };
  }
  const attempts = async ({ executionId }: { executionId: string }) =>
    (await producer.queue(SandboxExecute.name).getJob(executionId))?.attemptsStarted;
  const deletePod = ({ name }: Claimed) => test.kubectl(['-n', namespace, 'delete', 'pod', name, '--wait=false']);

  it('give the caller one result when a controller is killed and another one takes its execution over', async () => {
    const { request, running, pod } = await begin(SLOW);
    await Promise.all([controllers[0]?.kill(), startController()]);
    // Nobody renews the lease of the pod that was left behind: it ends after 15 s.
    const orphan = until(async () => (await claimed()).every(({ uid }) => uid !== pod.uid), {
      everyMs: 200,
      what: 'the end of the orphan',
    });
    expect(await running).toMatchObject([{ exit: 'ok', stdout: 'so far\ndone\n' }]);
    expect(await attempts(request)).toBe(2);
    // Asked for again, nothing runs again.
    expect((await sandboxes.execute(request, never)).runs).toEqual(await running);
    expect(await attempts(request)).toBe(2);
    await orphan;
  });

  it('give the caller its result when Redis is restarted under it, and run its code once', async () => {
    const { request, running } = await begin(SLOW);
    await redis.pause();
    await redis.resume();
    expect(await running).toMatchObject([{ exit: 'ok', stdout: 'so far\ndone\n' }]);
    expect(await attempts(request)).toBe(1);
  });

  it('run the code again in another pod when the infrastructure took its own away', async () => {
    const { request, running, pod } = await begin(SLOW);
    await deletePod(pod);
    expect(await running).toMatchObject([{ exit: 'ok', stdout: 'so far\ndone\n' }]);
    expect(await attempts(request)).toBe(2);
  });

  it('say what happened, with what was printed, when it happens to every try', async () => {
    const { request, running, pod } = await begin(ENDLESS);
    const pods = [pod];
    for (let i = 0; i < SandboxExecute.attemptsMax; i += 1) {
      const next = pods[i] ?? (await claimedBeside(pods));
      pods[i] = next;
      await sleep(i === SandboxExecute.attemptsMax - 1 ? 10_000 : 500); // the last one's first line, which nobody is told of before the end
      await deletePod(next);
    }
    const error = { message: expect.stringContaining('deleted by somebody else') };
    expect(await running).toMatchObject([{ exit: 'evicted', stdout: 'so far\n', error }]);
    expect(await attempts(request)).toBe(SandboxExecute.attemptsMax);
  });

  it(
    'try nothing again that is no fault of the infrastructure',
    broken(async ({ killSupervisor }) => {
      const { request, running, pod } = await begin(ENDLESS);
      killSupervisor(pod.uid);
      expect(await running).toMatchObject([{ exit: 'kernel_lost' }]);
      expect(await attempts(request)).toBe(1);
    }),
  );
});
