import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SandboxExecute } from '@etude/contracts/queues';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { Producer } from '@etude/queue/jobs/producer';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { startRedis, type TestRedis } from '@etude/test-support/redis';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cluster } from './cluster.js';
import { useNamespace } from './pod-namespace.js';
import { root } from './settings.js';
import { executionOf, smallTemplates } from './watched-executions.js';

const never = new AbortController().signal;
const [BEGAN, GO] = ['/tmp/began', '/tmp/go'];
/** Creates a file after its first line, and continues once the test has created another file. */
const untilGo = `import os, time
print("so far", flush=True)
open("${BEGAN}", "w").close()
while not os.path.exists("${GO}"): time.sleep(0.05)
print("done")`;

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
  const namespace = useNamespace(test, 'services');
  let redis: TestRedis;
  let dir = '';
  let producer: Producer;
  let sandboxes: QueueSandboxes;
  const installation = `t${randomBytes(4).toString('hex')}`;
  const secret = randomBytes(16).toString('hex');
  const controllers: TestProcess[] = [];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-service-failures-'));
    redis = await startRedis();
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
  });

  async function startController(): Promise<void> {
    const env = {
      ETUDE_LOG_LEVEL: 'warn',
      ETUDE_REDIS_URL: redis.url,
      ETUDE_QUEUE_PREFIX: installation,
      ETUDE_SANDBOX_DRIVER: 'kubernetes',
      ETUDE_SANDBOX_KUBECONFIG_PATH: test.kubeconfig,
      ETUDE_SANDBOX_NAMESPACE: namespace(),
      ETUDE_SANDBOX_INSTALLATION: installation,
      ETUDE_SANDBOX_TOKEN_SECRET: secret,
      ETUDE_SANDBOX_TEMPLATES_PATH: join(dir, 'templates.yaml'),
    };
    controllers.push(await startProcess({ args: [join(root, 'apps/sandbox-controller/dist/main.js')], env }));
  }

  /** Running pods that a controller has labelled as claimed. */
  async function claimed(): Promise<Claimed[]> {
    const selector = `etude.dev/pool=${installation},etude.dev/state=claimed`;
    const { items } = JSON.parse(await test.kubectl(['-n', namespace(), 'get', 'pods', '-l', selector, '-o', 'json'])) as PodList;
    return items
      .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === 'Running')
      .map(({ metadata }) => metadata);
  }
  const claimedBeside = (known: readonly Claimed[]) =>
    until(async () => (await claimed()).find(({ uid }) => known.every((one) => one.uid !== uid)), {
      everyMs: 100,
      what: 'another claimed pod',
    });
  const attempts = async ({ executionId }: { executionId: string }) =>
    (await producer.queue(SandboxExecute.name).getJob(executionId))?.attemptsStarted;
  const inPod = ({ name }: Claimed, code: string) =>
    test.kubectl(['-n', namespace(), 'exec', name, '--', '/usr/bin/python3', '-I', '-c', code]);

  it('give the caller one result when its controller is killed and Redis restarts', async () => {
    const request = executionOf(untilGo);
    const running = sandboxes.execute(request, never).then(({ runs }) => runs);
    const orphan = await claimedBeside([]);
    await redis.pause();
    await redis.resume();
    await Promise.all([controllers[0]?.kill(), startController()]);
    const pod = await claimedBeside([orphan]);
    await until(async () => (await inPod(pod, `import os; print(os.path.exists("${BEGAN}"))`)).trim() === 'True', {
      everyMs: 100,
      what: 'its first line',
    });
    // The command fails if the pod ends first. The test shows its output if the code did not continue.
    const words = await inPod(pod, `open("${GO}", "w").close()`).catch(String);
    expect({ words, runs: await running }).toMatchObject({ runs: [{ exit: 'ok', stdout: 'so far\ndone\n' }] });
    expect(await attempts(request)).toBe(2);
    // No controller renews the lease of the orphan, so it ends after 15 s.
    await until(async () => (await claimed()).every(({ uid }) => uid !== orphan.uid), { everyMs: 200, what: 'the end of the orphan' });
    // A repeat of the same request runs nothing.
    expect((await sandboxes.execute(request, never)).runs).toEqual(await running);
    expect(await attempts(request)).toBe(2);
  });
});
