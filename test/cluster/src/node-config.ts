import { globSync } from 'node:fs';
import { mkdir, readdir, rmdir, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { PAUSE_IMAGE } from './pause-image.js';
import type { Place } from './place.js';

const OVERLAYFS_MAGIC = 0x794c7630;

/** Where this cluster's pods are counted: a second kubelet on the machine would end them if both used the default. */
export const cgroupOf = (place: Pick<Place, 'id'>): string => `/etude-${place.id}`;

const CONTROLLERS = /\/(cpu|cpuacct|cpu,cpuacct|cpuset|memory|pids|blkio|freezer|devices|hugetlb|systemd)$/;

/** The folders that this control group is to have: one, or with version 1 one for each controller. */
function cgroupDirs(place: Pick<Place, 'id'>): string[] {
  const versionOne = globSync('/sys/fs/cgroup/*/').filter((dir) => CONTROLLERS.test(dir));
  return (versionOne.length > 0 ? versionOne : ['/sys/fs/cgroup']).map((dir) => `${dir}${cgroupOf(place)}`);
}

/** Waits for the end of the processes in them. On a machine with both versions, the runtime has added a group of version 2. */
export async function removeGroupsOf(place: Pick<Place, 'id'>): Promise<void> {
  for (const dir of globSync(`/sys/fs/cgroup/{,*/}${cgroupOf(place).slice(1)}`))
    await until(() => removeGroups(dir), { everyMs: 50, what: `the end of what ran in ${dir}` });
}

/** A control group goes by rmdir, from the innermost on; false while a process of it is still ending. */
async function removeGroups(dir: string): Promise<boolean> {
  for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory() && !(await removeGroups(join(dir, entry.name)))) return false;
  return rmdir(dir).then(
    () => true,
    ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
  );
}

/** Containers that print little and start fast; images come from archives and never from a registry. */
async function containerd({ dir }: Place): Promise<string> {
  // An overlay can't lie on an overlay, and a container's root is an overlay.
  const snapshotter = (await statfs(dir)).type === OVERLAYFS_MAGIC ? 'native' : 'overlayfs';
  return `version = 2
root = "${dir}/containerd"
state = "/run/containerd"
[grpc]
  address = "${dir}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Some kernels (and every container without the capability for it) forbid lowering oom_score_adj: containers then start with
  # the lowest that is allowed.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`;
}

const pods = ({ network }: Place) => ({
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'pods0',
      isGateway: true,
      ipMasq: false,
      hairpinMode: true,
      ipam: { type: 'host-local', ranges: [[{ subnet: network.pods }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
  ],
});

const kubelet = (place: Place) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: join(place.dir, 'pki', 'ca.crt') },
  },
  authorization: { mode: 'Webhook' },
  containerRuntimeEndpoint: `unix://${place.dir}/containerd.sock`,
  cgroupRoot: cgroupOf(place),
  cgroupDriver: 'cgroupfs', // no systemd is asked to make groups: there may be none
  failCgroupV1: false, // some machines have only version 1, which Kubernetes 1.34 runs on with this setting
  failSwapOn: false,
  podPidsLimit: 256, // a fork bomb ends inside its pod
  maxPods: 250,
  kubeAPIQPS: 200,
  kubeAPIBurst: 400,
  // A test disk is often nearly full; the node must not evict pods because of that, nor throw away images that no pod has just now.
  evictionHard: { 'memory.available': '200Mi', 'nodefs.available': '2%', 'imagefs.available': '2%' },
  imageGCHighThresholdPercent: 100,
  // Faults are seen in seconds, not in a minute: with the controller manager's grace period of 12 s.
  nodeStatusUpdateFrequency: '2s',
  nodeLeaseDurationSeconds: 8,
  resolvConf: join(place.dir, 'resolv.conf'), // names are not served here
  podLogsDir: join(place.dir, 'pod-logs'),
  volumePluginDir: join(place.dir, 'volume-plugins'),
});

/** The configuration files of containerd, its network plugin and the kubelet, and the folders that they expect. */
export async function writeNodeConfig(place: Place): Promise<void> {
  await Promise.all(['cni', 'pod-logs', 'volume-plugins'].map((name) => mkdir(join(place.dir, name), { recursive: true })));
  await Promise.all(cgroupDirs(place).map((dir) => mkdir(dir, { recursive: true })));
  await Promise.all([
    writeFile(join(place.dir, 'containerd.toml'), await containerd(place)),
    writeFile(join(place.dir, 'cni', '10-pods.conflist'), JSON.stringify(pods(place))),
    writeFile(join(place.dir, 'kubelet.yaml'), JSON.stringify(kubelet(place))),
    writeFile(join(place.dir, 'resolv.conf'), ''),
  ]);
}
