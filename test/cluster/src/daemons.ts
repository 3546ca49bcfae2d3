import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { inside } from './namespaces.js';
import type { Place } from './place.js';

/** The command line of each program of the cluster. Ports are the usual ones, because the cluster has its own network. */
const COMMANDS = {
  etcd: ({ dir }) => ['etcd', '--data-dir', `${dir}/etcd`, '--unsafe-no-fsync', '--log-level', 'warn'],
  containerd: ({ dir }) => ['containerd', '-c', `${dir}/containerd.toml`],
  apiserver: ({ dir, programs, network }) => [
    `${programs}/kube-apiserver`,
    '--etcd-servers=http://127.0.0.1:2379',
    `--bind-address=${network.nodeIp}`,
    `--advertise-address=${network.nodeIp}`,
    `--tls-cert-file=${dir}/pki/apiserver.crt`,
    `--tls-private-key-file=${dir}/pki/apiserver.key`,
    `--client-ca-file=${dir}/pki/ca.crt`,
    `--kubelet-client-certificate=${dir}/pki/admin.crt`,
    `--kubelet-client-key=${dir}/pki/admin.key`,
    '--kubelet-preferred-address-types=InternalIP', // no DNS server knows the name of the node
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${dir}/pki/accounts.pub`,
    `--service-account-signing-key-file=${dir}/pki/accounts.key`,
    `--service-cluster-ip-range=${network.services}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--shutdown-delay-duration=0s',
  ],
  controllers: ({ dir, programs }) => [
    `${programs}/kube-controller-manager`,
    '--leader-elect=false',
    `--kubeconfig=${dir}/controllers.conf`,
    `--service-account-private-key-file=${dir}/pki/accounts.key`,
    `--root-ca-file=${dir}/pki/ca.crt`,
    '--use-service-account-credentials=true',
    '--node-monitor-period=1s',
    '--node-monitor-grace-period=12s',
  ],
  scheduler: ({ dir, programs }) => [`${programs}/kube-scheduler`, '--leader-elect=false', `--kubeconfig=${dir}/scheduler.conf`],
  kubelet: ({ dir, programs, network }) => [
    `${programs}/kubelet`,
    `--kubeconfig=${dir}/kubelet.conf`,
    `--config=${dir}/kubelet.yaml`,
    `--root-dir=${dir}/kubelet`,
    `--cert-dir=${dir}/kubelet-pki`,
    '--hostname-override=node1',
    `--node-ip=${network.nodeIp}`,
  ],
  dns: ({ dir }) => [`${dir}/coredns`, '-conf', `${dir}/Corefile`],
  proxy: ({ dir, programs, network }) => [
    `${programs}/kube-proxy`,
    `--kubeconfig=${dir}/proxy.conf`,
    '--proxy-mode=iptables',
    '--hostname-override=node1',
    `--cluster-cidr=${network.pods}`,
    // Limits of connection tracking belong to the machine and can't be set from another network namespace.
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-established=0',
    '--conntrack-tcp-timeout-close-wait=0',
  ],
} as const satisfies Record<string, (place: Place) => readonly string[]>;

export type Daemon = keyof typeof COMMANDS;

/**
 * Starts a program in the background. Writes its process id inside the namespaces to `dir/pids`.
 *
 * @param more flags in addition to those of `COMMANDS`
 */
export async function startDaemon(place: Place, name: Daemon, more: readonly string[] = []): Promise<void> {
  if (await daemonRuns(place, name)) return;
  const script = 'log=$1; shift; setsid "$@" >>"$log" 2>&1 </dev/null & echo $!';
  const pid = await inside(place, 'sh', '-c', script, 'sh', join(place.dir, 'log', `${name}.log`), ...COMMANDS[name](place), ...more);
  await writeFile(join(place.dir, 'pids', name), pid.trim());
}

const pidOf = async (place: Place, name: Daemon) => (await readFile(join(place.dir, 'pids', name), 'utf8').catch(() => '')).trim();

/** Whether the program runs. Process ids in the namespaces only grow, so a later process doesn't get the id of this program. */
export async function daemonRuns(place: Place, name: Daemon): Promise<boolean> {
  const pid = await pidOf(place, name);
  if (pid === '') return false;
  return inside(place, 'kill', '-0', pid).then(
    () => true,
    () => false,
  );
}

export async function signalDaemon(place: Place, name: Daemon, signal: 'KILL' | 'STOP' | 'CONT'): Promise<void> {
  if (!(await daemonRuns(place, name))) throw new Error(`${name} does not run, so it can't be sent SIG${signal}`);
  await inside(place, 'kill', `-${signal}`, await pidOf(place, name));
}

/** Sends SIGKILL. Resolves when the program has ended, at once if it does not run. */
export async function stopDaemon(place: Place, name: Daemon): Promise<void> {
  if (!(await daemonRuns(place, name))) return;
  await signalDaemon(place, name, 'KILL');
  await until(async () => !(await daemonRuns(place, name)), { everyMs: 50, what: `the end of ${name}` });
}

/** The last lines of a program's log, for messages. */
export async function logOf(place: Place, name: Daemon): Promise<string> {
  const log = await readFile(join(place.dir, 'log', `${name}.log`), 'utf8').catch(() => '(no log)');
  return log.trimEnd().split('\n').slice(-15).join('\n');
}
