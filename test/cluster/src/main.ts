import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { type Cluster, keepCluster, missingForCluster, startCluster } from './cluster.js';
import { MachineLacks } from './machine.js';
import { runningOwnCluster } from './own-cluster.js';
import { sandboxImage } from './sandbox-image.js';
import { clusterDir } from './settings.js';

const USAGE = `node test/cluster/dist/main.js up | down | status | check | image [TAR] | kubectl ARGS... | run COMMAND ARGS...

  up       starts the cluster that is kept in ETUDE_CLUSTER_DIR (.etude/cluster), or finds it running; loads the sandbox image;
           prints {"kubeconfig", "image", "dir"} as one line of JSON
  down     ends it and removes its folder
  status   prints the same as up, and ends with 1 where it does not run
  check    prints what keeps this machine from it as one line of JSON, {"lacks": []}, and starts nothing
  image    loads an archive into it; without one, builds the sandbox image of this working tree and loads that
  kubectl  asks it
  run      starts a cluster, runs a command with KUBECONFIG, ETUDE_CLUSTER_DIR and ETUDE_SANDBOX_IMAGE set, and ends the cluster
`;

const KINDS = { own: 'a cluster of its own', kind: 'started by kind', given: 'the one of KUBECONFIG' } as const;

/** The machine can't have a cluster; `etude test --cluster` tells it from tests that fail. */
const NO_CLUSTER = 3;

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);
const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);

async function loadSandboxImage(cluster: Cluster): Promise<string> {
  const { name, archive } = await sandboxImage(note);
  if (archive !== '' && !(await cluster.hasImage(name))) await cluster.loadImage(archive);
  return name;
}

function running(): Cluster {
  const cluster = runningOwnCluster(clusterDir());
  if (!cluster) throw new Error(`no cluster runs in ${clusterDir()}; start it with \`up\``);
  return cluster;
}

/** The command's exit code; its cluster ends before this does, however it ends. */
async function runIn(command: readonly string[]): Promise<number> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stopping.abort());
  const started = performance.now();
  const seconds = () => ((performance.now() - started) / 1_000).toFixed(1);
  const cluster = await startCluster({ note });
  try {
    note(`Kubernetes is ready (${KINDS[cluster.kind]}) after ${seconds()} s`);
    const image = await loadSandboxImage(cluster);
    if (stopping.signal.aborted) return 130;
    note(`the image of its sandboxes is ${image}, after ${seconds()} s`);
    const env = { ...process.env, KUBECONFIG: cluster.kubeconfig, ETUDE_CLUSTER_DIR: cluster.dir, ETUDE_SANDBOX_IMAGE: image };
    const [program = '', ...args] = command;
    const child = spawn(program, args, { env, stdio: 'inherit' });
    stopping.signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 130;
  } finally {
    await cluster.stop();
  }
}

async function main([verb, ...args]: readonly string[]): Promise<number> {
  switch (verb) {
    case 'up': {
      const cluster = await keepCluster({ note });
      print({ kubeconfig: cluster.kubeconfig, image: await loadSandboxImage(cluster), dir: cluster.dir });
      return 0;
    }
    case 'down':
      await runningOwnCluster(clusterDir())?.stop();
      return 0;
    case 'status': {
      const cluster = runningOwnCluster(clusterDir());
      if (cluster) print({ kubeconfig: cluster.kubeconfig, dir: cluster.dir });
      else note(`no cluster runs in ${clusterDir()}`);
      return cluster ? 0 : 1;
    }
    case 'check':
      print({ lacks: await missingForCluster() });
      return 0;
    case 'image': {
      const [archive] = args;
      if (archive) await running().loadImage(resolve(archive));
      else print({ image: await loadSandboxImage(running()) });
      return 0;
    }
    case 'kubectl':
      process.stdout.write(await running().kubectl(args));
      return 0;
    case 'run':
      return runIn(args);
    default:
      process.stderr.write(USAGE);
      return 2;
  }
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    note(error instanceof Error ? error.message : String(error));
    process.exitCode = error instanceof MachineLacks ? NO_CLUSTER : 1;
  },
);
