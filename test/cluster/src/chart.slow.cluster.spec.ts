import { statSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cluster } from './cluster.js';
import { run } from './command.js';
import { goProgram } from './go-programs.js';
import { redisImage, sandboxImage, servicesImage } from './images.js';
import { root } from './settings.js';

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);
const CLI = join(root, 'apps/cli/dist/main.js');
const SCRIPT = `name: helm
rules:
  - match: 'double_number'
    delay_ms: 300
    reply: |
      \`\`\`python
      def double_number(value):
          return 2 * value
      \`\`\`
`;

/** Lets pods reach a port of this machine's loopback at an address of the cluster's network. */
async function relay(address: string, port: number): Promise<Server> {
  const server = createServer((from) => {
    const to = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    from.pipe(to).pipe(from);
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return server;
}

interface Workloads {
  readonly items: ReadonlyArray<{
    readonly spec: {
      readonly template: {
        readonly spec: {
          readonly containers: ReadonlyArray<{ readonly securityContext: unknown }>;
          readonly securityContext: unknown;
          readonly terminationGracePeriodSeconds: number;
        };
      };
    };
  }>;
}

const test = cluster();

const shown = (kind: string, name: string, path: string) => test.kubectl(['get', kind, name, '-n', 'etude', '-o', `jsonpath=${path}`]);

/** Adds to an error what the cluster tells about it. */
const explained = async (error: unknown): Promise<never> => {
  const pods = await test.kubectl(['get', 'pods', '-n', 'etude']);
  const logs = await test.kubectl(['logs', '-n', 'etude', '-l', 'app.kubernetes.io/part-of=etude', '--tail=5', '--prefix']);
  throw new Error(`${String(error)}\n${pods}\n${logs}`, { cause: error });
};

describe.skipIf(test.outside === null)('the chart', () => {
  const relays: Server[] = [];
  let dir = '';
  let helm = '';
  let qdrant: TestQdrant;
  let model: TestProcess;
  let port = 0;
  let imageMiB = 0;
  let set: string[] = [];
  const helmed = (...args: string[]) => run(helm, ['--kubeconfig', test.kubeconfig, '-n', 'etude', ...args]);
  const chart = join(root, 'helm/etude');

  /** Number of answers that the model has given. */
  const asked = async () => ((await (await fetch(`http://127.0.0.1:${port}/scripted/calls`)).json()) as { total: number }).total;

  /** Runs one problem many times through the Service, and returns the summary. */
  async function evalRun(samples: number): Promise<unknown> {
    const address = `${await shown('service', 'etude-gateway', '{.spec.clusterIP}')}:50051`;
    const key = Buffer.from(await shown('secret', 'etude-secrets', '{.data.api-key}'), 'base64').toString();
    const file = join(dir, 'problem.jsonl');
    const cases = [{ args: [21], expected: 42, public: true }];
    const evaluator = { functionCases: { entryPoint: 'double_number', cases } };
    await writeFile(file, JSON.stringify({ id: 'double', prompt: 'Write `double_number(value)`: twice a number.', evaluator }));
    const flags = { format: 'etude', samples: String(samples), concurrency: '3', memory: 'off', home: dir, address, 'api-key': key };
    const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const said = await run(process.execPath, [CLI, 'eval', 'run', file, '--json', ...given]);
    return JSON.parse(said.trim().split('\n').at(-1) ?? '');
  }

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-chart-'));
    helm = await goProgram('helm', note);
    const [services, redis, sandbox] = [await servicesImage(note), await redisImage(note), await sandboxImage(note)];
    imageMiB = statSync(services.archive).size / 2 ** 20;
    await Promise.all([services, redis].map(({ archive }) => test.loadImage(archive)));
    await test.startDns(note);
    await writeFile(join(dir, 'script.yaml'), SCRIPT);
    qdrant = await startQdrant(await findQdrant());
    model = await startProcess({ args: [join(root, 'libs/model/dist/scripted-main.js'), '--script', join(dir, 'script.yaml')] });
    ({ port } = JSON.parse(model.output().trim().split('\n').at(-1) ?? '{}') as { port: number });
    const address = test.outside ?? '';
    const ports = [port, Number(new URL(qdrant.url).port)];
    for (const one of ports) relays.push(await relay(address, one));
    const [repository = '', tag = ''] = services.name.split(/:(?=[^:]*$)/);
    const values = {
      image: { repository, tag, pullPolicy: 'Never' },
      model: { baseUrl: `http://${address}:${ports[0]}/v1`, name: 'scripted' },
      redis: { image: redis.name, storage: '64Mi' },
      qdrant: { url: `http://${address}:${ports[1]}` },
      settings: { ETUDE_EMBEDDER: 'lexical', ETUDE_SKILLS_ENABLED: true },
      sandboxes: {
        image: sandbox.name,
        templates: { default: { cpuRequest: '5m', memoryMiB: 512, diskMiB: 128, warm: { free: 1, max: 4 } } },
      },
    };
    await writeFile(join(dir, 'values.json'), JSON.stringify(values));
    set = ['-f', join(dir, 'values.json')];
    const hostPath = { path: join(test.dir, 'redis'), type: 'DirectoryOrCreate' };
    const volume = { accessModes: ['ReadWriteOnce'], capacity: { storage: '64Mi' }, hostPath, persistentVolumeReclaimPolicy: 'Delete' };
    await run('install', ['-d', '-m', '0777', hostPath.path]);
    await test.kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'redis' }, spec: volume }),
    );
  });

  afterAll(async () => {
    await helmed('uninstall', 'etude', '--ignore-not-found').catch(() => '');
    await Promise.all(relays.map((server) => new Promise((resolve) => server.close(resolve))));
    await model?.stop();
    await qdrant?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it('is ready within two minutes, and solves a task', async () => {
    await helmed('install', 'etude', chart, '--create-namespace', ...set, '--wait', '--timeout', '120s').catch(explained);
    expect(await helmed('test', 'etude').catch(explained)).toContain('Phase:          Succeeded');
  });

  it('takes an image of at most 250 MiB', () => {
    expect(imageMiB).toBeLessThan(250);
  });

  it.each([
    [
      'an upgrade',
      () => helmed('upgrade', 'etude', chart, ...set, '--set', 'settings.ETUDE_LOG_LEVEL=warn', '--wait', '--timeout', '180s'),
    ],
    ['a rollback', () => helmed('rollback', 'etude', '--wait', '--timeout', '180s')],
  ])('loses and repeats no task during %s', async (_what, change) => {
    const before = await asked();
    const running = evalRun(24);
    running.catch(() => undefined); // it is awaited below
    await until(async () => (await asked()) >= before + 2, { timeoutMs: 60_000, everyMs: 50, what: 'the first tasks' });
    await change();
    expect(await running).toMatchObject({ problems: 1, samples: 24, verdicts: { AC: 24 } });
    expect((await asked()) - before).toBe(24);
  });

  it('keeps its secrets when it is upgraded', async () => {
    const before = await shown('secret', 'etude-secrets', '{.data}');
    await helmed('upgrade', 'etude', chart, ...set, '--wait');
    expect(await shown('secret', 'etude-secrets', '{.data}')).toBe(before);
  });

  it('runs nothing as root, without limits, probes or a grace period', async () => {
    const { items } = JSON.parse(await test.kubectl(['get', 'deployments,statefulsets', '-n', 'etude', '-o', 'json'])) as Workloads;
    expect(items).toHaveLength(5);
    for (const { spec } of items) {
      const { containers, securityContext, terminationGracePeriodSeconds } = spec.template.spec;
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(30);
      for (const container of containers) {
        expect(container).toMatchObject({
          livenessProbe: expect.any(Object),
          readinessProbe: expect.any(Object),
          startupProbe: expect.any(Object),
          resources: { limits: { memory: expect.stringMatching(/i$/) } },
        });
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    }
  });

  it.each([
    ['replicas=-1', 'gateway.replicas=-1'],
    ['a misspelt value', 'gatewai.replicas=1'],
    ['a setting of no service', 'settings.LOG_LEVEL=info'],
    ['a URL without a scheme', 'redis.url=redis.example:6379'],
  ])('is refused with %s', async (_what, value) => {
    await expect(helmed('template', 'etude', chart, '--set', value)).rejects.toThrow(/values don't meet the specifications/);
  });

  it('leaves only the volume of Redis when it is uninstalled', async () => {
    await helmed('uninstall', 'etude', '--wait');
    const kinds = 'deployments,statefulsets,services,secrets,configmaps,networkpolicies,roles,rolebindings,poddisruptionbudgets,pvc';
    const left = (await test.kubectl(['get', kinds, '-n', 'etude', '-o', 'name'])).trim().split('\n');
    expect(left).toEqual(['configmap/kube-root-ca.crt', 'persistentvolumeclaim/data-etude-redis-0']);
    expect(await test.kubectl(['get', 'namespaces', '-o', 'name'])).not.toContain('etude-sandboxes');
  });
});
