import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `condition` returns a truthy value. @returns that value @throws Error that names `what` after `timeoutMs` */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 60_000, everyMs = 10, what = 'the condition' }: { timeoutMs?: number; everyMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`${what} did not become true within ${timeoutMs} ms`);
    await sleep(everyMs);
  }
}
