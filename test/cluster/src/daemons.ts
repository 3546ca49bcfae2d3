import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { inside } from './namespaces.js';
import { kubeconfigOf, type Place } from './place.js';

/** Lets a program of the node ask the name server of `startDns`. */
const withDns = ({ dir }: Place) => ['unshare', '--mount', 'sh', '-ec', 'mount --bind "$0" /etc/resolv.conf; exec "$@"', `${dir}/dns.conf`];

const forKeda = ({ dir }: Place) => [
  'env',
  `KUBECONFIG=${kubeconfigOf(dir)}`,
  'WATCH_NAMESPACE=',
  'POD_NAMESPACE=keda',
  'KEDA_CLUSTER_OBJECT_NAMESPACE=keda',
];

/** Flags with which a metrics API server serves the cluster's API server. */
const servesMetrics = ({ dir }: Place, port: number) => [
  `--secure-port=${port}`,
  `--tls-cert-file=${dir}/serving/tls.crt`,
  `--tls-private-key-file=${dir}/serving/tls.key`,
  `--client-ca-file=${dir}/serving/ca.crt`,
  `--cert-dir=${dir}/serving`,
  `--lister-kubeconfig=${kubeconfigOf(dir)}`,
  `--authentication-kubeconfig=${kubeconfigOf(dir)}`,
  `--authorization-kubeconfig=${kubeconfigOf(dir)}`,
];

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
    // With these flags, the API server forwards calls to others, such as a metrics API server.
    `--requestheader-client-ca-file=${dir}/pki/ca.crt`,
    '--requestheader-allowed-names=aggregator',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${dir}/pki/aggregator.crt`,
    `--proxy-client-key-file=${dir}/pki/aggregator.key`,
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
    '--horizontal-pod-autoscaler-sync-period=2s', // default 15 s
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
  kedaOperator: (place) => [
    ...withDns(place),
    ...forKeda(place),
    `${place.dir}/keda-operator`,
    '--enable-prometheus-metrics=false',
    '--enable-webhook-patching=false',
    '--enable-apiservice-patching=false',
    `--cert-dir=${place.dir}/serving`,
  ],
  kedaAdapter: (place) => [
    ...forKeda(place),
    `${place.dir}/keda-adapter`,
    '--port=8082',
    '--metrics-service-address=localhost:9666',
    ...servesMetrics(place, 6444),
  ],
  prometheus: (place) => [
    ...withDns(place),
    'prometheus',
    `--config.file=${place.dir}/prometheus.json`,
    `--storage.tsdb.path=${place.dir}/prometheus`,
    '--web.listen-address=127.0.0.1:9090',
  ],
  prometheusAdapter: (place) => [
    `${place.dir}/prometheus-adapter`,
    '--prometheus-url=http://127.0.0.1:9090',
    `--config=${place.dir}/adapter.yaml`,
    '--metrics-relist-interval=5s',
    ...servesMetrics(place, 6445),
  ],
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

/** Writes the program's process id inside the namespaces to `dir/pids`. @param more flags in addition to those of `COMMANDS` */
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

export async function logOf(place: Place, name: Daemon): Promise<string> {
  const log = await readFile(join(place.dir, 'log', `${name}.log`), 'utf8').catch(() => '(no log)');
  return log.trimEnd().split('\n').slice(-15).join('\n');
}
