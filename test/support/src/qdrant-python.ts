import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const STAND_IN = fileURLToPath(new URL('../qdrant-stand-in/', import.meta.url));
const PYTHONS = ['python3', '/usr/bin/python3'];
const INSTALL_TIMEOUT_MS = 300_000;

/**
 * A Python that has Qdrant's client, installed once per list of pinned packages.
 * @throws Error with what Python or pip said, where it can't be installed
 */
export async function pythonWithQdrant(): Promise<string> {
  const requirements = join(STAND_IN, 'requirements.txt');
  const digest = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex')
    .slice(0, 12);
  const home = join(ROOT, '.etude', 'cache', 'qdrant');
  const made = join(home, digest);
  if (existsSync(join(made, 'bin', 'python'))) return join(made, 'bin', 'python');
  await mkdir(home, { recursive: true });
  const making = `${made}.${process.pid}`;
  try {
    await makeEnvironment(making);
    await run(join(making, 'bin', 'python'), ['-m', 'pip', 'install', '-q', '--require-hashes', '-r', requirements], {
      timeout: INSTALL_TIMEOUT_MS,
    });
    // Several may have made one at once; the first stays.
    await rename(making, made).catch((error: unknown) => {
      if (!existsSync(made)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return join(made, 'bin', 'python');
}

/** Some systems ship a Python without the parts that make environments; another one may have them. */
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
