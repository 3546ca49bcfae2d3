import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/**
 * Addresses of one cluster. It lives in a network namespace of its own, which a pair of virtual interfaces joins to the machine:
 * only the subnet has to be free, every port is.
 */
export const Network = z.object({
  /** The machine's end of the pair. */
  device: z.string(),
  hostIp: z.string(),
  /** The other end, which is the node's address: the kubelet refuses a loopback one. */
  nodeIp: z.string(),
  pods: z.string(),
  services: z.string(),
  /** First address of `services`, which is the API server's. */
  apiServiceIp: z.string(),
});
export type Network = z.infer<typeof Network>;

/** A process. Its start time distinguishes it from a later process with the same id. */
export const ProcessId = z.object({ pid: z.number(), startedAt: z.string() });
export type ProcessId = z.infer<typeof ProcessId>;

/** The place of a cluster, with everything that another process needs in order to use, break or end it. */
export const Place = z.object({
  dir: z.string(),
  id: z.string(),
  /** Folder with the programs by their names. */
  programs: z.string(),
  network: Network,
  /** Process 1 of the cluster's namespaces, as the machine sees it. Everything ends with it. */
  init: ProcessId,
  /** Ends with this process. */
  owner: ProcessId,
});
export type Place = z.infer<typeof Place>;

const fileOf = (dir: string) => join(dir, 'cluster.json');

export const kubeconfigOf = (dir: string): string => join(dir, 'admin.conf');

export function writePlace(place: Place): void {
  writeFileSync(fileOf(place.dir), JSON.stringify(place, null, 2));
}

/** null where no cluster was started in this folder. */
export function readPlace(dir: string): Place | null {
  return existsSync(fileOf(dir)) ? Place.parse(JSON.parse(readFileSync(fileOf(dir), 'utf8'))) : null;
}

/** Field 22 of /proc/PID/stat; the name before it is in brackets and may contain any text. null if the process does not exist. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? null : (rest[18] ?? null);
  } catch {
    return null; // gone
  }
}

export function identify(pid: number): ProcessId {
  const startedAt = startOf(pid);
  if (startedAt === null) throw new Error(`process ${pid} ended as soon as it was started`);
  return { pid, startedAt };
}

export const isRunning = ({ pid, startedAt }: ProcessId): boolean => startOf(pid) === startedAt;
