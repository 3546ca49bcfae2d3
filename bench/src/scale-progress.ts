import { readFileSync } from 'node:fs';
import { processTree, readProcesses } from './proc.js';

const EVERY_MS = 15_000;
/** Programs that took less than this share of a core are not reported. */
const SHARE_MIN = 0.05;

export interface Watched {
  /** Absent: its programs are reported by their own names. */
  readonly name?: string;
  /** The process. Its descendants count too. */
  readonly pid: number;
}

function programOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return null; // the process has ended
    throw error;
  }
}

/** Processor seconds used so far. */
function secondsByName(watched: readonly Watched[]): Map<string, number> {
  const seconds = new Map<string, number>();
  for (const { name, pid: root } of watched)
    for (const pid of processTree(root)) {
      const program = programOf(pid);
      if (program === null) continue;
      const key = name ?? program;
      seconds.set(key, (seconds.get(key) ?? 0) + readProcesses([pid]).cpuSeconds);
    }
  return seconds;
}

/** Prints `state` and the busiest programs at intervals. @returns a function that ends this */
export function tellProgress(watched: () => readonly Watched[], state: () => string, say: (text: string) => void): () => void {
  let before = secondsByName(watched());
  let beganMs = performance.now();
  const timer = setInterval(() => {
    const after = secondsByName(watched());
    const tookS = (performance.now() - beganMs) / 1_000;
    const shares = [...after].map(([name, seconds]) => ({ name, share: (seconds - (before.get(name) ?? 0)) / tookS }));
    const busy = shares.filter(({ share }) => share >= SHARE_MIN).toSorted((a, b) => b.share - a.share);
    say(`  ${state()} | cores: ${busy.map(({ name, share }) => `${name} ${share.toFixed(2)}`).join(', ')}`);
    before = after;
    beganMs = performance.now();
  }, EVERY_MS);
  return () => clearInterval(timer);
}
