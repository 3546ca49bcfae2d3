/** The p-th percentile (0 to 100) of some measurements; NaN without measurements. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((p / 100) * sorted.length))] ?? Number.NaN;
}

export const round = (value: number, digits = 2) => Number(value.toFixed(digits));

/** Milliseconds that `work` takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Runs `work` n times, one after the other. Returns each duration in ms. */
export async function repeat(n: number, work: (i: number) => Promise<unknown>): Promise<number[]> {
  const durations: number[] = [];
  for (let i = 0; i < n; i++) durations.push(await timed(() => work(i)));
  return durations;
}

/** Runs `work` n times, `width` at once. Returns the whole duration in ms. */
export function spread(n: number, width: number, work: (i: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const lane = async () => {
    while (next < n) await work(next++);
  };
  return timed(() => Promise.all(Array.from({ length: width }, lane)));
}

/** The output of a bench at its end. Callers of `etude bench` read the last line. */
export const summaryLine = (bench: string, figures: Readonly<Record<string, number>>) =>
  JSON.stringify({ kind: 'summary', bench, figures });
