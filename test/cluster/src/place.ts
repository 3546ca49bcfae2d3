import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/**
 * Addresses of one cluster. A pair of virtual interfaces connects its network namespace to the machine. The subnet must be free on the
 * machine; every port of the namespace is free.
 */
export const Network = z.object({
  /** The machine's end of the pair. */
  device: z.string(),
  hostIp: z.string(),
  /** The cluster's end of the pair. It is the node's address, because the kubelet refuses a loopback address. */
  nodeIp: z.string(),
  pods: z.string(),
  services: z.string(),
  /** The first address of `services`. The API server has it. */
  apiServiceIp: z.string(),
});
export type Network = z.infer<typeof Network>;

/** A process. Its start time distinguishes it from a later process with the same id. */
export const ProcessId = z.object({ pid: z.number(), startedAt: z.string() });
export type ProcessId = z.infer<typeof ProcessId>;

/** The data by which any process can use, break or end a cluster. */
export const Place = z.object({
  dir: z.string(),
  id: z.string(),
  /** Folder with the programs by their names. */
  programs: z.string(),
  network: Network,
  /** Process 1 of the cluster's namespaces, with its id on this machine. The whole cluster ends with it. */
  init: ProcessId,
  /** The process that started the cluster. The cluster ends with it. */
  owner: ProcessId,
});
export type Place = z.infer<typeof Place>;

const fileOf = (dir: string) => join(dir, 'cluster.json');

export const kubeconfigOf = (dir: string): string => join(dir, 'admin.conf');

export function writePlace(place: Place): void {
  writeFileSync(fileOf(place.dir), JSON.stringify(place, null, 2));
}

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
    return null; // the process has ended
  }
}

export function identify(pid: number): ProcessId {
  const startedAt = startOf(pid);
  if (startedAt === null) throw new Error(`process ${pid} ended as soon as it was started`);
  return { pid, startedAt };
}

export const isRunning = ({ pid, startedAt }: ProcessId): boolean => startOf(pid) === startedAt;
