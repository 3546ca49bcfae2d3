import { globSync } from 'node:fs';
import { mkdir, readdir, rmdir, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { PAUSE_IMAGE } from './pause-image.js';
import type { Place } from './place.js';

const OVERLAYFS_MAGIC = 0x794c7630;

/** The control group of this cluster's pods. With the default group, a second kubelet on the machine would end them. */
const cgroupOf = (place: Pick<Place, 'id'>): string => `/etude-${place.id}`;

const CONTROLLERS = /\/(cpu|cpuacct|cpu,cpuacct|cpuset|memory|pids|blkio|freezer|devices|hugetlb|systemd)$/;

/** The folders of the cluster's control group: one in version 2 of cgroups, one per controller in version 1. */
function cgroupDirs(place: Pick<Place, 'id'>): string[] {
  const versionOne = globSync('/sys/fs/cgroup/*/').filter((dir) => CONTROLLERS.test(dir));
  return (versionOne.length > 0 ? versionOne : ['/sys/fs/cgroup']).map((dir) => `${dir}${cgroupOf(place)}`);
}

/** Removes the control groups after their processes have ended. With both versions on a machine, there is also a group of version 2. */
export async function removeGroupsOf(place: Pick<Place, 'id'>): Promise<void> {
  for (const dir of globSync(`/sys/fs/cgroup/{,*/}${cgroupOf(place).slice(1)}`))
    await until(() => removeGroups(dir), { everyMs: 50, what: `the end of what ran in ${dir}` });
}

/** Removes a control group and the groups inside. @returns false while a process of the group still ends */
async function removeGroups(dir: string): Promise<boolean> {
  for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory() && !(await removeGroups(join(dir, entry.name)))) return false;
  return rmdir(dir).then(
    () => true,
    ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
  );
}

/** The configuration of containerd. Images come from archives, never from a registry. */
async function containerd({ dir }: Place): Promise<string> {
  // One overlay file system can't lie on another, and the root of a container is an overlay.
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
  cgroupDriver: 'cgroupfs', // systemd may be absent, so the kubelet makes the groups
  failCgroupV1: false, // lets Kubernetes 1.34 run on machines that have only version 1
  failSwapOn: false,
  podPidsLimit: 256, // a fork bomb ends inside its pod
  maxPods: 250,
  kubeAPIQPS: 200,
  kubeAPIBurst: 400,
  // A test disk is often nearly full. The node must then not evict pods or remove unused images.
  evictionHard: { 'memory.available': '200Mi', 'nodefs.available': '2%', 'imagefs.available': '2%' },
  imageGCHighThresholdPercent: 100,
  // The controller manager's grace period is 12 s. With these values, faults show after seconds instead of a minute.
  nodeStatusUpdateFrequency: '2s',
  nodeLeaseDurationSeconds: 8,
  // The name server of `startDns`. Without it, pods can't resolve names.
  clusterDNS: [place.network.nodeIp],
  clusterDomain: 'cluster.local',
  resolvConf: join(place.dir, 'resolv.conf'),
  podLogsDir: join(place.dir, 'pod-logs'),
  volumePluginDir: join(place.dir, 'volume-plugins'),
});

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
