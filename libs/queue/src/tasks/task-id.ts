import { randomBytes } from 'node:crypto';

let lastMs = 0;
let sequence = 0;

/**
 * A new task id. Ids sort by the time they were made: 9 digits of milliseconds, 3 of a sequence inside the millisecond
 * (one process's ids are strictly ascending), and 50 bits of chance, all in base 36.
 */
export function newTaskId(nowMs = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = 0;
  } else if (++sequence >= 36 ** 3) {
    lastMs += 1;
    sequence = 0;
  }
  const chance = BigInt(`0x${randomBytes(8).toString('hex')}`)
    .toString(36)
    .padStart(13, '0')
    .slice(-10);
  return `t${lastMs.toString(36).padStart(9, '0')}${sequence.toString(36).padStart(3, '0')}${chance}`;
}
