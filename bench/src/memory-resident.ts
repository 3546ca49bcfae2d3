import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PROGRAM = fileURLToPath(new URL('./memory-resident-main.js', import.meta.url));

/** MiB by which a new process grows when it opens and searches the store, which has this number of records. */
export async function residentMiB(path: string, records: number): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--max-semi-space-size=4', PROGRAM, path, String(records)]);
  return Number(stdout);
}
