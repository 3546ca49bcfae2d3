import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100; // USER_HZ, fixed on Linux for user space

interface ProcessReading {
  readonly rssMiB: number;
  readonly cpuSeconds: number;
}

function read(pid: number): ProcessReading {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND, rssMiB: (Number(fields[21]) * 4_096) / 2 ** 20 };
}

function parentOf(pid: string): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const parent = parentOf(entry);
      children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
    } catch (error) {
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error; // the process ended meanwhile
    }
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** Resident memory and processor time used so far by some processes together. */
export function readProcesses(pids: readonly number[]): ProcessReading {
  const readings = pids.map(read);
  return {
    rssMiB: readings.reduce((sum, reading) => sum + reading.rssMiB, 0),
    cpuSeconds: readings.reduce((sum, reading) => sum + reading.cpuSeconds, 0),
  };
}

const pssKib = (pid: number) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]);

/** Memory of some processes together in MiB, in which a page that n processes share counts as 1/n of a page in each. */
export const proportionalMiB = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + pssKib(pid), 0) / 1_024;
