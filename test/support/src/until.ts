import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Polls until `condition` answers something truthy, and returns it. Waiting for a condition, never for a time.
 *
 * @throws Error naming `what` when it did not become true within `timeoutMs` (default 60,000: a busy machine takes its time).
 */
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
