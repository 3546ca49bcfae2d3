import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProcess } from '@etude/test-support/processes';
import { findQdrant, startQdrant } from '@etude/test-support/qdrant';
import type { Cluster } from './cluster.js';
import { run } from './command.js';
import { writeEarlierVersion } from './earlier-version.js';
import { goProgram } from './go-programs.js';
import { earlierServicesImage, type Image, redisImage, sandboxImage, servicesImage } from './images.js';
import { type Note, root } from './settings.js';

export const chart = join(root, 'helm/etude');
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

function valueOf({ name }: Image) {
  const [repository = '', tag = ''] = name.split(/:(?=[^:]*$)/);
  return { repository, tag, pullPolicy: 'Never' };
}

export type ChartRig = Awaited<ReturnType<typeof startChartRig>>;

/** Starts what the chart needs for its installation: images, values, a volume, a name server, and on this machine a scripted model and Qdrant. */
export async function startChartRig(cluster: Cluster, note: Note) {
  const dir = await mkdtemp(join(tmpdir(), 'etude-chart-'));
  const helm = await goProgram('helm', note);
  const [services, redis, sandbox] = [await servicesImage(note), await redisImage(note), await sandboxImage(note)];
  await Promise.all([services, redis].map(({ archive }) => cluster.loadImage(archive)));
  await cluster.startDns(note);
  await writeFile(join(dir, 'script.yaml'), SCRIPT);
  const qdrant = await startQdrant(await findQdrant());
  const model = await startProcess({ args: [join(root, 'libs/model/dist/scripted-main.js'), '--script', join(dir, 'script.yaml')] });
  const { port } = JSON.parse(model.output().trim().split('\n').at(-1) ?? '{}') as { port: number };
  const address = cluster.outside ?? '';
  const ports = [port, Number(new URL(qdrant.url).port)];
  const relays = await Promise.all(ports.map((one) => relay(address, one)));
  const values = {
    image: valueOf(services),
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
  const given = ['-f', join(dir, 'values.json'), '--wait', '--timeout', '180s'];
  await makeVolume(cluster);
  const helmed = (...args: string[]) => run(helm, ['--kubeconfig', cluster.kubeconfig, '-n', 'etude', ...args]);
  const kubectl = (...args: string[]) => cluster.kubectl(['-n', 'etude', ...args]);
  const shown = (kind: string, name: string, path: string) => kubectl('get', kind, name, '-o', `jsonpath=${path}`);

  const explained = async (error: unknown): Promise<never> => {
    const logs = await kubectl('logs', '-l', 'app.kubernetes.io/part-of=etude', '--tail=5', '--prefix');
    throw new Error(`${String(error)}\n${await kubectl('get', 'pods')}\n${logs}`, { cause: error });
  };

  const cli = async (...args: string[]) => {
    const home = await mkdtemp(join(dir, 'home-'));
    const service = `${await shown('service', 'etude-gateway', '{.spec.clusterIP}')}:50051`;
    const key = Buffer.from(await shown('secret', 'etude-secrets', '{.data.api-key}'), 'base64').toString();
    return run(process.execPath, [CLI, ...args, '--home', home, '--address', service, '--api-key', key]);
  };

  /** The findings of `etude doctor --cluster`. Ignores the exit code that reports problems. */
  const doctor = async () => {
    const command = [process.execPath, CLI, 'doctor', '--cluster', '--json'];
    const said = await run('sh', ['-c', '"$@" || [ $? = 4 ]', 'sh', ...command], { env: { KUBECONFIG: cluster.kubeconfig } });
    return (JSON.parse(said) as { findings: Array<{ name: string; ok: boolean }> }).findings;
  };

  const install = (from: string, set: readonly string[]) =>
    helmed('upgrade', '--install', 'etude', from, '--create-namespace', ...given, ...set.flatMap((value) => ['--set', value])).catch(
      explained,
    );

  return {
    archive: services.archive,
    doctor,
    helmed,
    kubectl,
    shown,
    explained,
    /** Installs or upgrades the chart, and waits until it is ready. */
    apply: (...set: string[]) => install(chart, set),
    async applyEarlier() {
      const tree = join(dir, 'earlier');
      await writeEarlierVersion(tree);
      const image = await earlierServicesImage(note, tree);
      await cluster.loadImage(image.archive);
      const { repository, tag } = valueOf(image);
      await install(join(tree, 'helm/etude'), [`image.repository=${repository}`, `image.tag=${tag}`]);
    },
    /** Number of calls that the model has got, including aborted calls. */
    asked: async () => ((await (await fetch(`http://127.0.0.1:${port}/scripted/calls`)).json()) as { total: number }).total,
    cli,
    async evalRun(samples: number, concurrency = 3): Promise<unknown> {
      const file = join(dir, 'problem.jsonl');
      const cases = [{ args: [21], expected: 42, public: true }];
      const evaluator = { functionCases: { entryPoint: 'double_number', cases } };
      await writeFile(file, JSON.stringify({ id: 'double', prompt: 'Write `double_number(value)`: twice a number.', evaluator }));
      const flags = ['--format', 'etude', '--samples', `${samples}`, '--concurrency', `${concurrency}`, '--memory', 'off'];
      return JSON.parse((await cli('eval', 'run', file, '--json', ...flags)).trim().split('\n').at(-1) ?? '');
    },
    async stop() {
      await helmed('uninstall', 'etude', '--ignore-not-found', '--wait').catch(() => '');
      await cluster.kubectl(['delete', 'namespace', 'etude', '--ignore-not-found']);
      await cluster.kubectl(['delete', 'pv', 'redis', '--ignore-not-found']);
      await Promise.all(relays.map((server) => new Promise((resolve) => server.close(resolve))));
      await model.stop();
      await qdrant.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function makeVolume(cluster: Cluster): Promise<void> {
  const path = join(cluster.dir, `redis-${crypto.randomUUID()}`);
  await run('install', ['-d', '-m', '0777', path]);
  const spec = {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '64Mi' },
    hostPath: { path },
    persistentVolumeReclaimPolicy: 'Retain',
  };
  await cluster.kubectl(
    ['apply', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'redis' }, spec }),
  );
}
