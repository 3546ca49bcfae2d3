import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { logPath } from '../home/home.js';
import type { Program } from './managed-process.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a stack's memory is, when it is in Qdrant. */
export interface QdrantPlace {
  readonly url: string;
  readonly apiKey: string | null;
  /** Certificates that its own is checked with; null: those of the system. */
  readonly caPath: string | null;
  /** What the stack starts itself; null: the server is somebody else's. */
  readonly binary: string | null;
}

function binaryOnPath({ PATH = '' }: Environment): string | null {
  return (
    PATH.split(delimiter)
      .map((folder) => join(folder, 'qdrant'))
      .find((file) => existsSync(file)) ?? null
  );
}

/** A server that is named, else one of our own. @throws CliError where there is neither */
export function qdrantPlace(environment: Environment, port: number): QdrantPlace {
  const url = environment['ETUDE_QDRANT_URL'] || environment['QDRANT_URL'];
  const apiKey = environment['ETUDE_QDRANT_API_KEY'] || environment['QDRANT_API_KEY'] || null;
  const caPath = environment['ETUDE_QDRANT_CA_PATH'] || environment['QDRANT_CA_PATH'] || null;
  if (url) return { url, apiKey, caPath, binary: null };
  const binary = binaryOnPath(environment);
  if (binary !== null) return { url: `http://127.0.0.1:${port}`, apiKey: null, caPath: null, binary };
  throw new CliError(EXIT.unavailable, 'there is no Qdrant to keep memory in', [
    'name a server: export ETUDE_QDRANT_URL=http://localhost:6333   # and ETUDE_QDRANT_API_KEY, ETUDE_QDRANT_CA_PATH where it wants them',
    'for example: docker run -p 127.0.0.1:6333:6333 -v qdrant:/qdrant/storage qdrant/qdrant:v1.18.2',
    'or put a qdrant on the PATH, and the stack starts it',
  ]);
}

const REACHED_WITHIN_MS = 5_000;

/** Before anything is started: there is one, and somebody listens where it is named. @throws CliError */
export async function requireQdrant(environment: Environment): Promise<void> {
  const { url, binary } = qdrantPlace(environment, 0);
  if (binary !== null) return;
  const host = /^https?:/.test(url) ? URL.parse(url)?.hostname : null;
  if (!host) throw new CliError(EXIT.usage, `ETUDE_QDRANT_URL is ${url}, which is no URL of a server; it looks like http://localhost:6333`);
  // Where the address names none, services look at 6333. A URL itself forgets a port that is its protocol's usual one.
  const port = Number(/^https?:\/\/[^/?#]*:(\d+)/.exec(url)?.[1] ?? 6333);
  const socket = connect({ host: host.replace(/^\[|\]$/g, ''), port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(REACHED_WITHIN_MS) });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint = ['start it, or set ETUDE_QDRANT_URL'];
    throw new CliError(EXIT.unavailable, `Qdrant at ${host}:${port} cannot be reached: ${code ?? message}`, hint, { cause: error });
  } finally {
    socket.destroy();
  }
}

export function qdrantSettings({ url, apiKey, caPath }: QdrantPlace): Record<string, string> {
  return {
    ETUDE_MEMORY_ADAPTER: 'qdrant',
    ETUDE_QDRANT_URL: url,
    ...(apiKey === null ? {} : { ETUDE_QDRANT_API_KEY: apiKey }),
    ...(caPath === null ? {} : { ETUDE_QDRANT_CA_PATH: caPath }),
  };
}

/** What runs inside of `test/cluster run`: makes the cluster ready for sandboxes and says so. */
const INSIDE = fileURLToPath(new URL('./cluster-main.js', import.meta.url));
/** The first start of a cluster of one's own compiles Kubernetes and builds an image. */
const READY_TIMEOUT_MS = 1_800_000;
/** A cluster is taken apart process by process. */
const STOP_TIMEOUT_MS = 25_000;

/** What the cluster says once pods can be started in it. */
export const ClusterReady = z.object({
  ready: z.literal(true),
  kubeconfig: z.string(),
  namespace: z.string(),
  image: z.string(),
  templates: z.string(),
});
export type ClusterReady = z.infer<typeof ClusterReady>;

export interface ClusterContext {
  readonly home: string;
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Wraps a command so that it ends with this process. */
  readonly tied: (command: string, args: readonly string[]) => Pick<Program, 'command' | 'args'>;
}

const templatesPath = (home: string) => join(home, 'sandbox-templates.json');
const secretPath = (home: string) => join(home, 'sandbox-secret');

/** Tells the pods of this home from those of others in one namespace. */
const installationOf = (home: string) => `local-${createHash('sha256').update(home).digest('hex').slice(0, 8)}`;

/**
 * The cluster whose pods run the code: the one of KUBECONFIG, else kind where it works, else one of the project's own. One that was
 * started for this stack ends with it; a given one stays.
 */
export function clusterProgram({ home, root, environment, tied }: ClusterContext): Program {
  const inside = [process.execPath, INSIDE, JSON.stringify({ root, templates: templatesPath(home), installation: installationOf(home) })];
  return {
    name: 'cluster',
    ...tied(process.execPath, [join(root, 'test/cluster/dist/main.js'), 'run', ...inside]),
    env: environment,
    cwd: root,
    ready: '"ready":true',
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    once: true,
    progress: /^cluster: (.*)/,
    logPath: logPath(home, 'cluster'),
  };
}

/** Kept from start to start, so that a controller knows the pods of the one before. */
function tokenSecret(home: string): string {
  const path = secretPath(home);
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  }
  return readFileSync(path, 'utf8').trim();
}

/** The sandbox controller's, for the cluster that said it is ready. */
export const kubernetesSettings = (home: string, cluster: ClusterReady): Record<string, string> => ({
  ETUDE_SANDBOX_DRIVER: 'kubernetes',
  ETUDE_SANDBOX_NAMESPACE: cluster.namespace,
  ETUDE_SANDBOX_KUBECONFIG_PATH: cluster.kubeconfig,
  ETUDE_SANDBOX_TEMPLATES_PATH: cluster.templates,
  ETUDE_SANDBOX_TOKEN_SECRET: tokenSecret(home),
  ETUDE_SANDBOX_INSTALLATION: installationOf(home),
});
