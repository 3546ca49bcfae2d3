const STILL_MS = 30_000;

/** Work that takes minutes without a word looks like hanging: says every half a minute that it goes on. */
export async function stillWorking<T>(what: string, note: (line: string) => void, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const still = setInterval(() => note(`still ${what}: ${Math.round((performance.now() - started) / 1_000)} s so far`), STILL_MS);
  try {
    return await work();
  } finally {
    clearInterval(still);
  }
}
