import { globSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { becomesReady } from './control.js';
import { type Daemon, signalDaemon, startDaemon, stopDaemon } from './daemons.js';
import { inside } from './namespaces.js';
import type { Place } from './place.js';

const MIB = 1024 * 1024;

export type Faults = ReturnType<typeof faultsOf>;

/** The faults in and around pods, each with its repair. A test repairs its faults before it ends. */
export function faultsOf(place: Place) {
  const start = async (name: Daemon) => {
    await startDaemon(place, name);
    await becomesReady(place, name);
  };
  return {
    /** The node stops reporting. Its pods continue, and the control plane counts it as lost after about 12 s. */
    stopKubelet: () => stopDaemon(place, 'kubelet'),
    startKubelet: () => start('kubelet'),
    killApiServer: () => stopDaemon(place, 'apiserver'),
    startApiServer: () => start('apiserver'),
    /** Connections stay open and carry no data, as behind a broken switch. */
    pauseApiServer: () => signalDaemon(place, 'apiserver', 'STOP'),
    resumeApiServer: () => signalDaemon(place, 'apiserver', 'CONT'),
    /**
     * Restarts controllers, scheduler and kubelet, so that they connect to the API server at once. Otherwise the back-off of client-go
     * delays their next request by up to a minute. A test that stops the API server calls this at its end.
     */
    settle: async () => {
      for (const name of ['controllers', 'scheduler', 'kubelet'] as const) {
        await stopDaemon(place, name);
        await start(name);
      }
    },
    stopContainerd: () => stopDaemon(place, 'containerd'),
    startContainerd: () => start('containerd'),
    /** Drops every packet from and to a pod silently. */
    cutPodNetwork: (podIp: string) => dropPackets(place, '-I', podIp),
    healPodNetwork: (podIp: string) => dropPackets(place, '-D', podIp),
    /** Lowers the memory limit, so that the kernel soon ends process 1 for too much memory. */
    exhaustMemory,
    killSupervisor: (podUid: string) => void process.kill(supervisorOf(processesOf(podUid)), 'SIGKILL'),
    /** The kubelet counts its node as short of memory and evicts pods one by one until `relieveNode`. */
    pressNode: () => restartKubelet(place, { 'memory.available': '100Ti' }, { 'memory.available': '1s' }),
    relieveNode: () => restartKubelet(place, {}, {}),
  };
}

/** Adds or removes the rules. They are in the table `raw`, so that they also cut connections that are tracked already. */
async function dropPackets(place: Place, change: '-I' | '-D', podIp: string): Promise<void> {
  for (const side of ['-s', '-d']) await inside(place, 'iptables', '-w', '-t', 'raw', change, 'PREROUTING', side, podIp, '-j', 'DROP');
}

/** Process ids, on this machine, of a pod's processes. `first`: process 1 of each container. */
function processesOf(podUid: string): { readonly first: number[]; readonly others: number[] } {
  const found: { first: number[]; others: number[] } = { first: [], others: [] };
  for (const file of globSync('/proc/[0-9]*/cgroup')) {
    const folder = file.slice(0, -'/cgroup'.length);
    try {
      if (!readFileSync(file, 'utf8').includes(`pod${podUid}`)) continue;
      const first = /^NSpid:.*\t1$/m.test(readFileSync(join(folder, 'status'), 'utf8'));
      found[first ? 'first' : 'others'].push(Number(folder.slice('/proc/'.length)));
    } catch {
      // The process ended meanwhile.
    }
  }
  return found;
}

/** Process 1 of the sandbox container, not of the pause container. */
function supervisorOf({ first }: ReturnType<typeof processesOf>): number {
  const found = first.find((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== 'pause');
  if (found === undefined) throw new Error('no process 1 of this pod runs here');
  return found;
}

async function exhaustMemory(podUid: string, roomMiB: number): Promise<void> {
  const processes = processesOf(podUid);
  const pid = supervisorOf(processes);
  await Promise.all(processes.others.map((other) => writeFile(`/proc/${other}/oom_score_adj`, '0')));
  await writeFile(`/proc/${pid}/oom_score_adj`, '1000');
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
  const one = /:memory:(.*)/.exec(groups)?.[1];
  const [folder, used, limit] = one
    ? [`/sys/fs/cgroup/memory${one}`, 'memory.usage_in_bytes', 'memory.limit_in_bytes']
    : [`/sys/fs/cgroup${/^0::(.*)/m.exec(groups)?.[1]}`, 'memory.current', 'memory.max'];
  const bytes = Number(await readFile(join(folder, used), 'utf8')) + roomMiB * MIB;
  await writeFile(join(folder, limit), String(bytes));
}

async function restartKubelet(place: Place, evictionSoft: object, evictionSoftGracePeriod: object): Promise<void> {
  const file = join(place.dir, 'kubelet.yaml');
  const config = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...config, evictionSoft, evictionSoftGracePeriod }));
  await stopDaemon(place, 'kubelet');
  await startDaemon(place, 'kubelet');
  await becomesReady(place, 'kubelet');
}
