import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const IN_MEMORY = '/dev/shm';
const FREE_BYTES_MIN = 4 * 1024 ** 3;

/** A folder for temporary files, in memory if there is room, because databases sync each write and a busy disk syncs slowly. */
export function scratchFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize > FREE_BYTES_MIN ? IN_MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
