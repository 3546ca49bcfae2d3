import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

const CACHE = fileURLToPath(new URL('../../../.etude/cache/', import.meta.url));
/** Candidates in order. Some installations of Python lack the module `venv`. */
const PYTHONS = ['python3', '/usr/bin/python3'];
const INSTALL_TIMEOUT_MS = 300_000;

/**
 * Returns the Python of a virtual environment, which is made once. When several processes make it at once, the first stays.
 *
 * @param name folder in `.etude/cache`; each list of packages needs its own
 * @param packages arguments of pip
 * @throws Error of Python or pip
 */
export async function pythonWith(name: string, packages: readonly string[]): Promise<string> {
  const made = join(CACHE, name);
  const python = join(made, 'bin', 'python');
  if (existsSync(python)) return python;
  await mkdir(dirname(made), { recursive: true });
  const making = `${made}.${process.pid}`;
  try {
    await makeEnvironment(making);
    await run(join(making, 'bin', 'python'), ['-m', 'pip', 'install', '-q', ...packages], { timeout: INSTALL_TIMEOUT_MS });
    await rename(making, made).catch((error: unknown) => {
      if (!existsSync(python)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return python;
}

async function makeEnvironment(path: string): Promise<void> {
  const failures: unknown[] = [];
  for (const python of PYTHONS) {
    try {
      await run(python, ['-m', 'venv', path], { timeout: INSTALL_TIMEOUT_MS });
      return;
    } catch (error) {
      failures.push(error);
      await rm(path, { recursive: true, force: true });
    }
  }
  throw new AggregateError(failures, `no Python here makes a virtual environment (${PYTHONS.join(', ')})`);
}
