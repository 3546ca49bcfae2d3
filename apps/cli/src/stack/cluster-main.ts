import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { ClusterReady } from './places.js';

/** Namespace of the manifests in k8s/. */
const NAMESPACE = 'etude-sandboxes';
const PODS_MAX = 24;
/** Memory of a pod with the limits that apply by default. */
const POD_BYTES = 768 * 1_048_576;
const KUBECTL_TIMEOUT_MS = 60_000;

const { root, templates, installation } = z
  .object({ root: z.string(), templates: z.string(), installation: z.string() })
  .parse(JSON.parse(process.argv[2] ?? '{}'));
/** Set by `test/cluster run`, except for the namespace and the templates, which the user may set. */
const environment = z
  .object({
    KUBECONFIG: z.string().min(1),
    ETUDE_CLUSTER_DIR: z.string().default(''),
    ETUDE_SANDBOX_IMAGE: z.string().min(1),
    ETUDE_SANDBOX_NAMESPACE: z.string().default(''),
    ETUDE_SANDBOX_TEMPLATES_PATH: z.string().default(''),
  })
  .parse(process.env);
const { KUBECONFIG: kubeconfig, ETUDE_SANDBOX_IMAGE: image } = environment;

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);

/** Runs kubectl and returns its stdout. The project's own cluster brings its own kubectl. */
async function kubectl(...args: string[]): Promise<string> {
  const own = environment.ETUDE_CLUSTER_DIR !== '';
  const [command, before] = own
    ? [process.execPath, [join(root, 'test/cluster/dist/main.js'), 'kubectl']]
    : ['kubectl', ['--kubeconfig', kubeconfig]];
  const { stdout } = await promisify(execFile)(command, [...before, ...args], { cwd: root, timeout: KUBECTL_TIMEOUT_MS });
  return stdout;
}

/** This machine's address as a node sees it. Nothing is sent. */
async function addressTowards(node: string): Promise<string> {
  const socket = createSocket(isIP(node) === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(9, node);
    await once(socket, 'connect');
    return socket.address().address;
  } finally {
    socket.close();
  }
}

/** Lets this machine reach the sandboxes. The manifests admit only a controller inside the cluster. */
async function admitThisMachine(): Promise<void> {
  const nodes = await kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}');
  const address = await addressTowards(nodes.trim().split(' ')[0] ?? '');
  const from = [{ ipBlock: { cidr: `${address}/${isIP(address) === 6 ? 128 : 32}` } }];
  const patch = JSON.stringify([{ op: 'replace', path: '/spec/ingress/0/from', value: from }]);
  await kubectl('patch', 'networkpolicy', 'controller-to-supervisor', '-n', NAMESPACE, '--type=json', '-p', patch);
}

/** Applies k8s/ and returns its namespace. A namespace that was given is used as it is, because its owner may not allow more. */
async function prepareNamespace(): Promise<string> {
  if (environment.ETUDE_SANDBOX_NAMESPACE) return environment.ETUDE_SANDBOX_NAMESPACE;
  note('applying k8s/');
  await kubectl('apply', '-k', join(root, 'k8s'));
  await admitThisMachine();
  return NAMESPACE;
}

/** How many pods fit into half of this machine's memory, from 2 to 24. A pod that can't be scheduled is only in the way. */
const podsMax = () => Math.min(PODS_MAX, Math.max(2, Math.floor(totalmem() / 2 / POD_BYTES)));

/** Writes the templates of pods, unless the user gave some. Pods request little CPU, so that a laptop has room for enough of them. */
function writeTemplates(): string {
  if (environment.ETUDE_SANDBOX_TEMPLATES_PATH) return environment.ETUDE_SANDBOX_TEMPLATES_PATH;
  const max = podsMax();
  const standard = { image, cpuRequest: '50m', warm: { free: Math.min(4, Math.floor(max / 2)), max } };
  writeFileSync(templates, `${JSON.stringify({ default: standard }, null, 2)}\n`);
  return templates;
}

let namespace = '';

/** Deletes this stack's pods, which otherwise wait for a claim until they expire. The project's own cluster takes its pods with it. */
async function leave(): Promise<never> {
  if (environment.ETUDE_CLUSTER_DIR === '' && namespace) {
    const ended = kubectl('delete', 'pods', '-n', namespace, '-l', `etude.dev/pool=${installation}`, '--wait=false');
    await ended.catch((error: unknown) => note(`its pods end by themselves: ${(error as Error).message}`));
  }
  process.exit(0);
}

const stay = setInterval(() => undefined, 60_000);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void leave());
try {
  namespace = await prepareNamespace();
  const said: ClusterReady = { ready: true, kubeconfig, namespace, image, templates: writeTemplates() };
  process.stdout.write(`${JSON.stringify(said)}\n`);
} catch (error) {
  clearInterval(stay);
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
