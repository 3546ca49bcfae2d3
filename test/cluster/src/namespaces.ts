import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { run } from './command.js';
import { identify, isRunning, type Network, type Place, type ProcessId } from './place.js';

/**
 * Folders that the cluster's mount namespace keeps in memory, so that no files stay on the machine. They hold sockets of containerd's
 * shims, network namespaces, the lock of iptables, address leases and links to logs.
 */
const PRIVATE = ['/run', '/var/lib/cni', '/var/log'];
const PREPARE = `set -e
mount --make-rshared /
mount -t proc proc /proc
for dir in ${PRIVATE.join(' ')}; do mount -t tmpfs -o mode=755 tmpfs "$dir"; done
ip link set lo up
exec "$0"`;

/**
 * Starts process 1 of new process, mount and network namespaces. Process 1 ends with this process, even if this process is killed. The
 * kernel then ends every process in the namespaces and removes their mounts, interfaces and rules of iptables.
 */
export async function enterNamespaces(programs: string, dir: string): Promise<ProcessId> {
  await mkdir('/var/lib/cni', { recursive: true });
  const unshare = ['unshare', '--net', '--pid', '--mount', '--propagation', 'private', '--fork', '--kill-child'];
  const log = openSync(join(dir, 'log', 'namespaces.log'), 'w');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...unshare, 'sh', '-c', PREPARE, join(programs, 'pause')], {
    detached: true,
    stdio: ['ignore', log, log],
  });
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new Error('unshare did not start');
  const failed = () => child.exitCode !== null || child.signalCode !== null;
  const init = await until(
    async () => {
      if (failed()) throw new Error(`no namespaces: ${await readFile(join(dir, 'log', 'namespaces.log'), 'utf8')}`);
      return initOf(pid);
    },
    { what: 'process 1 of the cluster' },
  );
  return identify(init);
}

/** Process id of the only child of `unshare`; null until the child runs `pause`, which is the last step of its start. */
async function initOf(unshare: number): Promise<number | null> {
  const child = Number((await readFile(`/proc/${unshare}/task/${unshare}/children`, 'utf8').catch(() => '')).trim());
  if (child === 0) return null;
  const name = await readFile(`/proc/${child}/comm`, 'utf8').catch(() => '');
  return name.trim() === 'pause' ? child : null;
}

/** The networks of 10.100.0.0/16 to 10.199.0.0/16 without a route. The order is random, so that two new clusters rarely choose the same. */
async function freeNetworks(): Promise<Network[]> {
  const routes = await run('ip', ['-4', 'route', 'show', 'table', 'all']);
  return Array.from({ length: 100 }, (_, index) => ({ base: `10.${index + 100}`, at: Math.random() }))
    .filter(({ base }) => !routes.includes(` ${base}.`) && !routes.includes(`\n${base}.`))
    .toSorted((a, b) => a.at - b.at)
    .map(({ base }) => ({
      device: `etude-${base.slice(3)}`,
      hostIp: `${base}.255.1`,
      nodeIp: `${base}.255.2`,
      pods: `${base}.0.0/24`,
      services: `${base}.128.0/20`,
      apiServiceIp: `${base}.128.1`,
    }));
}

export async function joinNetwork(init: ProcessId): Promise<Network> {
  let last: unknown = new Error('every subnet of 10.100.0.0/16 to 10.199.0.0/16 is routed already');
  for (const network of (await freeNetworks()).slice(0, 5)) {
    const { device, hostIp, nodeIp, pods, services } = network;
    try {
      await run('ip', ['link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(init.pid)]);
    } catch (error) {
      last = error; // another cluster has just taken this name
      continue;
    }
    await run('sh', ['-ec', `ip address add ${hostIp}/30 dev ${device}; ip link set ${device} up`]);
    const inner = `ip address add ${nodeIp}/30 dev eth0; ip link set eth0 up; ip route add default via ${hostIp}
sysctl -qw net.ipv4.ip_forward=1
sysctl -qw net.bridge.bridge-nf-call-iptables=1 || true`;
    await run('nsenter', ['-t', String(init.pid), '-n', '-m', '-p', '--', 'sh', '-ec', inner]);
    await run('sh', ['-ec', `ip route add ${pods} via ${nodeIp}; ip route add ${services} via ${nodeIp}`]);
    return network;
  }
  throw last;
}

export function inside(place: Pick<Place, 'init'>, command: string, ...args: string[]): Promise<string> {
  return run('nsenter', ['-t', String(place.init.pid), '-n', '-m', '-p', '--', command, ...args]);
}

export async function leaveNamespaces(init: ProcessId): Promise<void> {
  if (isRunning(init)) process.kill(init.pid, 'SIGKILL');
  await until(() => !isRunning(init), { what: 'the end of the cluster' });
}
