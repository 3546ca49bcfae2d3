import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Hears what takes long. */
export type Note = (line: string) => void;

/** The checkout. Both src/ and dist/ lie three folders below it. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const kubenodeSources = join(root, 'test/cluster/kubenode');

/** ETUDE_CLUSTER_CACHE: where built programs and images are kept. */
export const cacheDir = (): string => process.env['ETUDE_CLUSTER_CACHE'] ?? join(root, '.etude/cache/cluster');

const STILL_MS = 30_000;

/** Work that takes minutes without a word looks like hanging: says every half a minute that it goes on. */
export async function stillWorking<T>(what: string, note: Note, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const still = setInterval(() => note(`still ${what}: ${Math.round((performance.now() - started) / 1_000)} s so far`), STILL_MS);
  try {
    return await work();
  } finally {
    clearInterval(still);
  }
}
