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

/** `edge`: Qdrant's own engine, as of 1.18. `local`: what does in Python what the engine does. */
export type StandInEngine = 'edge' | 'local';

export interface QdrantPython {
  readonly python: string;
  readonly engine: StandInEngine;
}

/**
 * A Python that has Qdrant's client, and its engine where that is made for this machine; installed once per lists of pinned packages.
 * @throws Error with what Python or pip said, where the client can't be installed
 */
export async function pythonWithQdrant(): Promise<QdrantPython> {
  const made = await environment();
  const python = join(made, 'bin', 'python');
  const engine = await run(python, ['-c', 'import qdrant_edge'], { timeout: INSTALL_TIMEOUT_MS }).then(
    () => 'edge' as const,
    () => 'local' as const,
  );
  return { python, engine };
}

async function environment(): Promise<string> {
  const [requirements, edge] = [join(STAND_IN, 'requirements.txt'), join(STAND_IN, 'requirements-edge.txt')];
  const digest = createHash('sha256')
    .update(await readFile(requirements))
    .update(await readFile(edge))
    .digest('hex')
    .slice(0, 12);
  const home = join(ROOT, '.etude', 'cache', 'qdrant');
  const made = join(home, digest);
  if (existsSync(join(made, 'bin', 'python'))) return made;
  await mkdir(home, { recursive: true });
  const making = `${made}.${process.pid}`;
  try {
    await makeEnvironment(making);
    await install(making, requirements);
    // Not made for every machine; whoever prints what the tests run on says so.
    await install(making, edge).catch(() => {});
    // Several may have made one at once; the first stays.
    await rename(making, made).catch((error: unknown) => {
      if (!existsSync(made)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return made;
}

async function install(environmentPath: string, requirements: string): Promise<void> {
  const pip = ['-m', 'pip', 'install', '-q', '--require-hashes', '-r', requirements];
  await run(join(environmentPath, 'bin', 'python'), pip, { timeout: INSTALL_TIMEOUT_MS });
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
