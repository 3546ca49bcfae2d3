import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** The Debian packages that a cluster needs, each by one of its programs. The launcher installs the same packages. */
const PACKAGES = {
  etcd: 'etcd-server',
  containerd: 'containerd',
  runc: 'runc',
  iptables: 'iptables',
  ip: 'iproute2',
  openssl: 'openssl',
  setpriv: 'util-linux',
  sysctl: 'procps',
};
const GO_MINOR = 24;

const starts = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).error === undefined;

function go(): string[] {
  const { stdout } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' });
  const minor = Number(/^go1\.(\d+)/.exec(stdout ?? '')?.[1] ?? 0);
  return minor >= GO_MINOR ? [] : [`Go 1.${GO_MINOR} or newer is missing, which builds Kubernetes: see https://go.dev/doc/install`];
}

/** The machine lacks a requirement. The message names it and the remedy. */
export class MachineLacks extends Error {
  constructor(what: string, missing: readonly string[]) {
    super(`${what}:\n${missing.map((line) => `  ${line}`).join('\n')}`);
  }
}

/** The missing requirements of a cluster on this machine, each with its remedy. Empty if nothing is missing. */
export function missingForOwnCluster(): string[] {
  if (process.platform !== 'linux') return ['a cluster of its own needs Linux; set KUBECONFIG to a test cluster'];
  if (process.getuid?.() !== 0)
    return ['a cluster of its own needs root for namespaces, mounts and interfaces: use sudo, or set KUBECONFIG'];
  const absent = Object.entries(PACKAGES).flatMap(([program, name]) => (starts(program, '--help') ? [] : [name]));
  if (!existsSync('/usr/lib/cni/bridge')) absent.push('containernetworking-plugins');
  const install = absent.length > 0 ? [`programs are missing: apt-get install -y --no-install-recommends ${absent.join(' ')}`] : [];
  return [...install, ...go(), ...kernel()];
}

/** Tests the kernel, because containers and kernels forbid namespaces in many ways. */
function kernel(): string[] {
  const script = 'mount -t tmpfs tmpfs /mnt && ip link add etude-try type bridge';
  const { status, stderr } = spawnSync('unshare', ['--net', '--pid', '--mount', '--fork', 'sh', '-c', script], { encoding: 'utf8' });
  if (status === 0) return [];
  return [`the kernel refuses namespaces or bridges: ${(stderr ?? '').trim().split('\n').at(-1)}. A container must be privileged`];
}

/** A processor that images are built for, as Debian and OCI name it. */
export type Arch = 'amd64' | 'arm64';
export const OWN_ARCH: Arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
/** The kernel's entry for the emulator of a processor. */
const EMULATORS: Readonly<Record<Arch, string>> = { amd64: 'qemu-x86_64', arm64: 'qemu-aarch64' };

/** The reasons why this machine can't build images, each with its remedy. */
export function missingForImages(arch: Arch = OWN_ARCH): string[] {
  const absent = ['buildah', 'debootstrap'].filter((name) => !starts(name, '--version'));
  const programs = absent.length > 0 ? [`programs are missing: apt-get install -y --no-install-recommends ${absent.join(' ')}`] : [];
  if (arch === OWN_ARCH || existsSync(`/proc/sys/fs/binfmt_misc/${EMULATORS[arch]}`)) return programs;
  return [...programs, `programs for ${arch} don't run here: apt-get install -y qemu-user-static binfmt-support, with binfmt_misc mounted`];
}
