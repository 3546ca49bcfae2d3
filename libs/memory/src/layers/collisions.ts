import { EtudeError } from '@etude/contracts/errors';
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPTS_MAX = 200;
const WAIT_MS_MAX = 40;

/**
 * Reads, decides and writes again until nobody else was faster: `attempt` answers null where a revision it read had gone by.
 * Waits, for a random time that grows, only after a collision.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE after 200 of them
 */
export async function untilTaken<T>(what: string, attempt: () => Promise<T | null>): Promise<T> {
  for (let collisions = 0; collisions < ATTEMPTS_MAX; collisions += 1) {
    if (collisions > 0) await sleep(Math.random() * Math.min(WAIT_MS_MAX, 2 ** collisions));
    const done = await attempt();
    if (done !== null) return done;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `${what} was changed by others ${ATTEMPTS_MAX} times while it was being written; try again`);
}
