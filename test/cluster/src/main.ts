import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cluster, missingForCluster, startCluster } from './cluster.js';
import { type Arch, MachineLacks } from './machine.js';
import { sandboxImage, servicesImage } from './images.js';

const USAGE = `node test/cluster/dist/main.js check | image sandbox|services [amd64|arm64] | run COMMAND ARGS... | kubectl ARGS...

  check    prints what this machine lacks for a cluster, as one line of JSON such as {"lacks": []}, and starts nothing
  image    builds an image from this checkout, by default for this machine's processor, and prints its name and archive as JSON
  run      starts a cluster, runs a command with KUBECONFIG, ETUDE_CLUSTER_DIR and ETUDE_SANDBOX_IMAGE set, and ends the cluster
  kubectl  asks the cluster of the \`run\` that this is part of
`;

/** Exit code for a machine that can't have a cluster; other codes mean failed tests. */
const NO_CLUSTER = 3;

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);

const IMAGES: Readonly<Record<string, typeof sandboxImage | undefined>> = { sandbox: sandboxImage, services: servicesImage };

const isArch = (name?: string): name is Arch => name === 'amd64' || name === 'arm64';

/** Starts a cluster, runs a command in it, and always stops the cluster. @returns the exit code of the command */
async function runIn([program = '', ...args]: readonly string[]): Promise<number> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stopping.abort());
  const started = performance.now();
  const seconds = () => ((performance.now() - started) / 1_000).toFixed(1);
  const { kind, kubeconfig, dir, loadImage, stop } = await startCluster(note);
  try {
    note(`Kubernetes is ready (${kind === 'own' ? 'a cluster of its own' : 'the cluster of KUBECONFIG'}) after ${seconds()} s`);
    const { name, archive } = await sandboxImage(note);
    if (archive !== '') await loadImage(archive);
    if (stopping.signal.aborted) return 130;
    note(`the image of the sandboxes is ${name}, after ${seconds()} s`);
    const env = { ...process.env, KUBECONFIG: kubeconfig, ETUDE_CLUSTER_DIR: dir, ETUDE_SANDBOX_IMAGE: name };
    const child = spawn(program, args, { env, stdio: 'inherit' });
    stopping.signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 130;
  } finally {
    await stop();
  }
}

async function main([verb, ...args]: readonly string[]): Promise<number> {
  if (verb === 'run') return runIn(args);
  const [kind = '', arch] = args;
  const build = verb === 'image' && (arch === undefined || isArch(arch)) ? IMAGES[kind] : undefined;
  if (build !== undefined) process.stdout.write(`${JSON.stringify(await build(note, isArch(arch) ? arch : undefined))}\n`);
  else if (verb === 'check') process.stdout.write(`${JSON.stringify({ lacks: missingForCluster() })}\n`);
  else if (verb === 'kubectl') process.stdout.write(await cluster().kubectl(args));
  else {
    process.stderr.write(USAGE);
    return 2;
  }
  return 0;
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    note(error instanceof Error ? error.message : String(error));
    process.exitCode = error instanceof MachineLacks ? NO_CLUSTER : 1;
  },
);
