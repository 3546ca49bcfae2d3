import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { freePort } from './ports.js';
import { startProcess } from './processes.js';
import { scratchFolder } from './scratch.js';

const STAND_IN = fileURLToPath(new URL('../qdrant-stand-in/', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../.etude/cache/', import.meta.url));
const INSTALL_TIMEOUT_MS = 300_000;

const run = promisify(execFile);

/** Where the Qdrant for tests comes from; the best source comes first. */
export type QdrantSource =
  | { readonly kind: 'given'; readonly url: string; readonly apiKey: string | null; readonly caPath: string | null }
  | { readonly kind: 'stand-in'; readonly python: string }
  | { readonly kind: 'none'; readonly why: string };

export interface TestQdrant {
  readonly kind: QdrantSource['kind'];
  readonly url: string;
  readonly apiKey: string | null;
  readonly caPath: string | null;
  drop(prefix: string): Promise<void>;
  /** Stops the stand-in. A server from `QDRANT_URL` keeps running. */
  stop(): Promise<void>;
}

/** Options of the stand-in. */
export interface TestQdrantOptions {
  /** Key that requests must send. Absent: requests need no key. */
  readonly apiKey?: string;
  /** Paths of PEM files. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

/**
 * Finds the Qdrant for tests: the server at `QDRANT_URL` (with `QDRANT_API_KEY` and `QDRANT_CA_PATH`), else the stand-in over Qdrant's own
 * engine, if that can be installed.
 */
export async function findQdrant(env: NodeJS.ProcessEnv = process.env): Promise<QdrantSource> {
  const url = env['QDRANT_URL'];
  if (url) return { kind: 'given', url, apiKey: env['QDRANT_API_KEY'] ?? null, caPath: env['QDRANT_CA_PATH'] ?? null };
  const lists = ['requirements.txt', 'requirements-edge.txt'].map((name) => join(STAND_IN, name));
  const digest = createHash('sha256').update(Buffer.concat(lists.map((path) => readFileSync(path))));
  try {
    const packages = ['--require-hashes', ...lists.flatMap((path) => ['-r', path])];
    const python = await pythonWith(`qdrant/${digest.digest('hex').slice(0, 12)}`, packages);
    return { kind: 'stand-in', python };
  } catch (error) {
    return { kind: 'none', why: String((error as { stderr?: string }).stderr || error).trim() };
  }
}

export function describeQdrant(source: QdrantSource): string {
  if (source.kind === 'given') return `Qdrant for tests: the server at ${new URL(source.url).origin} (QDRANT_URL)`;
  if (source.kind === 'none') return `Qdrant for tests: none, so tests of its adapter are skipped (${source.why.split('\n').at(-1)})`;
  return "Qdrant for tests: a stand-in over Qdrant's own engine (qdrant-edge-py). Set QDRANT_URL to test with a real server";
}

/** @throws Error for a source of kind `none` */
export async function startQdrant(source: QdrantSource, options: TestQdrantOptions = {}): Promise<TestQdrant> {
  if (source.kind === 'none') throw new Error(describeQdrant(source));
  if (source.kind === 'given') {
    if (source.caPath !== null) setDefaultCACertificates([...getCACertificates('default'), readFileSync(source.caPath, 'utf8')]);
    return testQdrant(source.kind, source, async () => {});
  }
  const { apiKey, tls } = options;
  const dir = await mkdtemp(join(scratchFolder(), 'etude-qdrant-'));
  const remove = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  process.once('exit', remove);
  const port = await freePort();
  const args = [join(STAND_IN, 'server.py'), '--port', String(port), '--folder', dir];
  if (apiKey !== undefined) args.push('--api-key', apiKey);
  if (tls !== undefined) args.push('--certificate', tls.certificate, '--key', tls.key);
  const server = await startProcess({ command: source.python, args, env: { OMP_NUM_THREADS: '1' }, ready: 'ready\n' });
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  return testQdrant(source.kind, { url, apiKey: apiKey ?? null, caPath: tls?.certificate ?? null }, async () => {
    await server.stop();
    process.off('exit', remove);
    remove();
  });
}

function testQdrant(
  kind: QdrantSource['kind'],
  { url, apiKey, caPath }: Pick<TestQdrant, 'url' | 'apiKey' | 'caPath'>,
  stop: () => Promise<void>,
): TestQdrant {
  const headers = apiKey === null ? {} : { 'api-key': apiKey };
  return {
    kind,
    url,
    apiKey,
    caPath,
    stop,
    async drop(prefix) {
      const answer = await fetch(`${url}/collections`, { headers });
      const { result } = (await answer.json()) as { result: { collections: ReadonlyArray<{ name: string }> } };
      for (const { name } of result.collections.filter((each) => each.name.startsWith(prefix)))
        await fetch(`${url}/collections/${name}`, { method: 'DELETE', headers });
    },
  };
}

/**
 * Returns the Python of a virtual environment, which is made once. If several processes make it at once, the first one is kept.
 *
 * @param name folder in `.etude/cache`; each list of packages needs its own
 * @param packages arguments of pip
 * @throws Error of Python or pip
 */
async function pythonWith(name: string, packages: readonly string[]): Promise<string> {
  const made = join(CACHE, name);
  const python = join(made, 'bin', 'python');
  if (existsSync(python)) return python;
  await mkdir(dirname(made), { recursive: true });
  const making = `${made}.${process.pid}`;
  try {
    await run('python3', ['-m', 'venv', making], { timeout: INSTALL_TIMEOUT_MS });
    await run(join(making, 'bin', 'python'), ['-m', 'pip', 'install', '-q', ...packages], { timeout: INSTALL_TIMEOUT_MS });
    await rename(making, made).catch((error: unknown) => {
      if (!existsSync(python)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return python;
}
