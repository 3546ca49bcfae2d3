import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ClusterReady } from './programs.js';

/** Namespace of the manifests in k8s/. */
const NAMESPACE = 'etude-sandboxes';
const PODS_MAX = 24;
/** Memory of a pod with the default limits. */
const POD_BYTES = 768 * 1_048_576;
const KUBECTL_TIMEOUT_MS = 60_000;

const { root, templates } = JSON.parse(process.argv[2] ?? '{}') as { readonly root: string; readonly templates: string };
/** `test/cluster run` sets the first three variables. The user may set namespace and templates. */
const {
  KUBECONFIG: kubeconfig = '',
  ETUDE_CLUSTER_DIR: ownCluster = '',
  ETUDE_SANDBOX_IMAGE: image = '',
  ETUDE_SANDBOX_NAMESPACE: givenNamespace = '',
  ETUDE_SANDBOX_TEMPLATES_PATH: givenTemplates = '',
} = process.env;

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);

/** Runs kubectl and returns its stdout. The project's own cluster brings its own kubectl. */
async function kubectl(...args: string[]): Promise<string> {
  const [command, ...before] = ownCluster
    ? [process.execPath, join(root, 'test/cluster/dist/main.js'), 'kubectl']
    : ['kubectl', '--kubeconfig', kubeconfig];
  const { stdout } = await promisify(execFile)(command, [...before, ...args], { cwd: root, timeout: KUBECTL_TIMEOUT_MS });
  return stdout;
}

/** This machine's address towards a node. No packet is sent. */
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

/** Applies k8s/ and returns its namespace. A given namespace is used unchanged, because its owner may not allow changes. */
async function prepareNamespace(): Promise<string> {
  if (givenNamespace) return givenNamespace;
  note('applying k8s/');
  await kubectl('apply', '-k', join(root, 'k8s'));
  await admitThisMachine();
  return NAMESPACE;
}

/** Writes the templates of pods, unless the user gave some. Pods request little CPU, so that a laptop has room for enough of them. */
function writeTemplates(): string {
  if (givenTemplates) return givenTemplates;
  // All pods together may use half of this machine's memory, so that every pod can be scheduled.
  const max = Math.min(PODS_MAX, Math.max(2, Math.floor(totalmem() / 2 / POD_BYTES)));
  const standard = { image, cpuRequest: '50m', warm: { free: Math.min(4, Math.floor(max / 2)), max } };
  writeFileSync(templates, `${JSON.stringify({ default: standard }, null, 2)}\n`);
  return templates;
}

try {
  const said: ClusterReady = { ready: true, kubeconfig, namespace: await prepareNamespace(), templates: writeTemplates() };
  process.stdout.write(`${JSON.stringify(said)}\n`);
  // Keeps this process alive, because the cluster ends with it.
  setInterval(() => undefined, 60_000);
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
