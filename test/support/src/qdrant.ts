import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { tmpdir } from 'node:os';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { freePort } from './ports.js';
import { pythonWithQdrant, STAND_IN, type StandInEngine } from './qdrant-python.js';
import { until } from './until.js';

/** Where tests take their Qdrant from, best first. */
export type QdrantSource =
  | { readonly kind: 'given'; readonly url: string; readonly apiKey: string | null; readonly caPath: string | null }
  | { readonly kind: 'binary'; readonly path: string }
  | { readonly kind: 'docker' }
  | { readonly kind: 'stand-in'; readonly python: string; readonly engine: StandInEngine }
  | { readonly kind: 'none'; readonly why: string };

export interface TestQdrant {
  readonly kind: QdrantSource['kind'];
  readonly url: string;
  readonly apiKey: string | null;
  readonly caPath: string | null;
  /** Collections whose names start so. */
  drop(prefix: string): Promise<void>;
  /** Ends what was started; a server that was given stays. */
  stop(): Promise<void>;
}

export interface TestQdrantOptions {
  /** Only for the stand-in: which server's ways it takes on. */
  readonly version?: string;
  /** Only for the stand-in: what it asks for. */
  readonly apiKey?: string;
  /** Only for the stand-in: files in PEM. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

const IMAGE = 'qdrant/qdrant:v1.18.2';
/** Of the engine that is pinned; what came later is only known to the local mode. */
const ENGINE_VERSION = '1.18.';
const MEMORY_FOLDER = '/dev/shm';
const MEMORY_FOLDER_FREE_BYTES = 4 * 1024 ** 3;
const READY_TIMEOUT_MS = 60_000;

/**
 * `QDRANT_URL` (with `QDRANT_API_KEY` and `QDRANT_CA_PATH`), a binary on the PATH, Docker where it runs, or the stand-in: over Qdrant's
 * engine where it can be had, unless `ETUDE_TEST_QDRANT_ENGINE` says `local`.
 */
export async function findQdrant(env: NodeJS.ProcessEnv = process.env): Promise<QdrantSource> {
  const url = env['QDRANT_URL'];
  if (url) return { kind: 'given', url, apiKey: env['QDRANT_API_KEY'] ?? null, caPath: env['QDRANT_CA_PATH'] ?? null };
  const path = (env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'qdrant'))
    .find((file) => existsSync(file));
  if (path !== undefined) return { kind: 'binary', path };
  if (dockerRuns()) return { kind: 'docker' };
  try {
    const { python, engine } = await pythonWithQdrant();
    return { kind: 'stand-in', python, engine: env['ETUDE_TEST_QDRANT_ENGINE'] === 'local' ? 'local' : engine };
  } catch (error) {
    return { kind: 'none', why: String((error as { stderr?: string }).stderr || error).trim() };
  }
}

/** One line for people. */
export function describeQdrant(source: QdrantSource): string {
  if (source.kind === 'given') return `Qdrant for tests: the server at ${new URL(source.url).origin} (QDRANT_URL)`;
  if (source.kind === 'binary') return `Qdrant for tests: ${source.path}`;
  if (source.kind === 'docker') return `Qdrant for tests: ${IMAGE} in Docker`;
  if (source.kind === 'stand-in') {
    const over = source.engine === 'edge' ? "Qdrant's own engine (qdrant-edge-py)" : "qdrant-client's local mode";
    return `Qdrant for tests: a stand-in over ${over}; set QDRANT_URL for a real server`;
  }
  return `Qdrant for tests: none, so tests of its adapter are skipped (${source.why.split('\n').at(-1)})`;
}

/** @throws Error where there is none; ask `findQdrant` first */
export async function startQdrant(source: QdrantSource, options: TestQdrantOptions = {}): Promise<TestQdrant> {
  if (source.kind === 'none') throw new Error(describeQdrant(source));
  if (source.kind === 'given') {
    trust(source.caPath);
    return testQdrant(source.kind, source, async () => {});
  }
  const dir = await mkdtemp(join(scratch(), 'etude-qdrant-'));
  const port = await freePort();
  const child = launch(source, port, dir, options);
  const kill = () => {
    child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once('exit', kill);
  const place = {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    apiKey: options.apiKey ?? null,
    caPath: options.tls?.certificate ?? null,
  };
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2_000)));
  child.stdout?.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2_000)));
  await until(() => isReady(child, place.url, said), { timeoutMs: READY_TIMEOUT_MS, everyMs: 50, what: 'Qdrant' }).catch(
    (error: unknown) => {
      process.off('exit', kill);
      kill();
      throw new Error(`Qdrant did not start: ${said}`, { cause: error });
    },
  );
  return testQdrant(source.kind, place, async () => {
    process.off('exit', kill);
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await rm(dir, { recursive: true, force: true });
  });
}

function dockerRuns(): boolean {
  try {
    execFileSync('docker', ['info'], { stdio: 'ignore', timeout: 5_000 });
    return true;
  } catch {
    return false;
  }
}

/** In memory where there is plenty: an engine writes every index to the disk, and waits for it. */
function scratch(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize > MEMORY_FOLDER_FREE_BYTES ? MEMORY_FOLDER : tmpdir();
  } catch {
    return tmpdir();
  }
}

function launch(source: QdrantSource, port: number, dir: string, options: TestQdrantOptions): ChildProcess {
  if (source.kind === 'binary') {
    const env = {
      ...process.env,
      QDRANT__SERVICE__HOST: '127.0.0.1',
      QDRANT__SERVICE__HTTP_PORT: String(port),
      QDRANT__SERVICE__GRPC_PORT: '0',
      QDRANT__STORAGE__STORAGE_PATH: join(dir, 'storage'),
      QDRANT__STORAGE__SNAPSHOTS_PATH: join(dir, 'snapshots'),
      QDRANT__TELEMETRY_DISABLED: 'true',
    };
    return spawn(source.path, [], { env, cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
  }
  if (source.kind === 'docker')
    return spawn('docker', ['run', '--rm', '-p', `127.0.0.1:${port}:6333`, IMAGE], { stdio: ['ignore', 'pipe', 'pipe'] });
  if (source.kind !== 'stand-in') throw new Error(`${source.kind} is not started`);
  const version = options.version ?? '1.18.2';
  const engine = version.startsWith(ENGINE_VERSION) ? source.engine : 'local';
  const args = [join(STAND_IN, 'server.py'), '--port', String(port), '--version', version, '--engine', engine, '--folder', dir];
  if (options.apiKey !== undefined) args.push('--api-key', options.apiKey);
  if (options.tls !== undefined) args.push('--certificate', options.tls.certificate, '--key', options.tls.key);
  // It ends when its input does, so also when this process is killed.
  return spawn(source.python, args, { env: { PATH: process.env['PATH'], OMP_NUM_THREADS: '1' }, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** The stand-in says so itself; a server is asked. */
async function isReady(child: ChildProcess, url: string, said: string): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
  if (/^ready$/m.test(said)) return true;
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

function trust(caPath: string | null): void {
  if (caPath !== null) setDefaultCACertificates([...getCACertificates('default'), readFileSync(caPath, 'utf8')]);
}

function testQdrant(
  kind: QdrantSource['kind'],
  place: Pick<TestQdrant, 'url' | 'apiKey' | 'caPath'>,
  stop: () => Promise<void>,
): TestQdrant {
  const { url, apiKey, caPath } = place;
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
