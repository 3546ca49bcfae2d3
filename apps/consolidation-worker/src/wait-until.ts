import { setTimeout as sleep } from 'node:timers/promises';

const POLL_FIRST_MS = 20;
const POLL_MOST_MS = 500;

/**
 * Asks until the answer is true, at growing intervals, for `timeoutMs` at most.
 *
 * @returns whether it became true
 * @throws AbortError when `signal` aborts
 */
export async function waitUntil(condition: () => Promise<boolean>, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = POLL_FIRST_MS; ; waitMs = Math.min(waitMs * 2, POLL_MOST_MS)) {
    if (await condition()) return true;
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) return false;
    await sleep(Math.min(waitMs, leftMs), undefined, { signal });
  }
}
