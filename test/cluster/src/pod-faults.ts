import { globSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { becomesReady } from './control.js';
import { startDaemon, stopDaemon } from './daemons.js';
import { inside } from './namespaces.js';
import { type Place, readPlace } from './place.js';

const MIB = 1024 * 1024;

/** What can go wrong with single pods, done from their node. */
export interface PodFaults {
  /** The kernel ends process 1 with the next byte that is too many, as if it had used all of the pod's memory itself. */
  readonly exhaustMemory: (podUid: string, roomMiB: number) => Promise<void>;
  /** SIGKILL for process 1. */
  readonly killSupervisor: (podUid: string) => void;
  /** The kubelet finds its node short of memory, and evicts pod after pod until `relieveNode`. */
  readonly pressNode: () => Promise<void>;
  readonly relieveNode: () => Promise<void>;
  /** The node sends what is for this address to a network card that is gone, as it does for a while after an address has moved. */
  readonly staleNeighbour: (podIp: string) => Promise<void>;
  /** The next pod gets this address, if it is free. */
  readonly giveNext: (podIp: string) => Promise<void>;
  /** The pod has its address, and its container is about to start. */
  readonly isMade: (podUid: string) => boolean;
  /** The address is a pod's. */
  readonly isGiven: (podIp: string) => Promise<boolean>;
}

/** @param dir of a cluster that this project started */
export function podFaultsOf(dir: string): PodFaults {
  const place = readPlace(dir);
  if (!place) throw new Error(`no cluster of this project was started in ${dir}`);
  return {
    exhaustMemory: (podUid, roomMiB) => exhaustMemory(podUid, roomMiB),
    killSupervisor: (podUid) => void process.kill(supervisorOf(processesOf(podUid)), 'SIGKILL'),
    pressNode: () =>
      restartKubelet(place, { evictionSoft: { 'memory.available': '100Ti' }, evictionSoftGracePeriod: { 'memory.available': '1s' } }),
    relieveNode: () => restartKubelet(place, { evictionSoft: {}, evictionSoftGracePeriod: {} }),
    staleNeighbour: async (podIp) =>
      void (await inside(place, 'ip', 'neigh', 'replace', podIp, 'lladdr', '02:00:00:00:00:01', 'dev', 'pods0', 'nud', 'stale')),
    giveNext: async (podIp) => void (await inside(place, 'sh', '-ec', `printf %s ${before(podIp)} >${ADDRESSES}/last_reserved_ip.0`)),
    isMade: (podUid) => processesOf(podUid).first.length > 0,
    isGiven: (podIp) =>
      inside(place, 'test', '-e', `${ADDRESSES}/${podIp}`).then(
        () => true,
        () => false,
      ),
  };
}

/** Where the network plugin keeps who has which address. */
const ADDRESSES = '/var/lib/cni/networks/pods';

const before = (ip: string) => ip.replace(/\d+$/, (last) => String(Number(last) - 1));

/** Process ids of the machine, by whether they are process 1 of a container. */
function processesOf(podUid: string): { readonly first: number[]; readonly others: number[] } {
  const found: { first: number[]; others: number[] } = { first: [], others: [] };
  for (const file of globSync('/proc/[0-9]*/cgroup')) {
    const folder = file.slice(0, -'/cgroup'.length);
    try {
      if (!readFileSync(file, 'utf8').includes(`pod${podUid}`)) continue;
      const first = /^NSpid:.*\t1$/m.test(readFileSync(join(folder, 'status'), 'utf8'));
      found[first ? 'first' : 'others'].push(Number(folder.slice('/proc/'.length)));
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

/** The container's, and not that of the pod itself, which only waits. */
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

async function restartKubelet(place: Place, settings: object): Promise<void> {
  const file = join(place.dir, 'kubelet.yaml');
  await writeFile(file, JSON.stringify({ ...(JSON.parse(await readFile(file, 'utf8')) as object), ...settings }));
  await stopDaemon(place, 'kubelet');
  await startDaemon(place, 'kubelet');
  await becomesReady(place, 'kubelet');
}
