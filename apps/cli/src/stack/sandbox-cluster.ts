import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { logPath } from './home.js';
import type { Program } from './managed-process.js';

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
