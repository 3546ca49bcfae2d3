import { hash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a stack's memory is, when it is in Qdrant. Services read the server's key and certificates from the environment themselves. */
export interface QdrantPlace {
  readonly url: string;
  /** Path of the qdrant that the stack starts; null if the server is somebody else's. */
  readonly binary: string | null;
}

/** The server that the environment names, else the qdrant on the PATH. @throws CliError if there is neither */
export function qdrantPlace(environment: Environment, port: number): QdrantPlace {
  const url = environment['ETUDE_QDRANT_URL'];
  if (url) return { url, binary: null };
  const onPath = (environment['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'qdrant'));
  const binary = onPath.find((file) => existsSync(file));
  if (binary !== undefined) return { url: `http://127.0.0.1:${port}`, binary };
  throw new CliError(EXIT.unavailable, 'there is no Qdrant to keep memory in', [
    'name a server: export ETUDE_QDRANT_URL=http://localhost:6333   # and ETUDE_QDRANT_API_KEY, ETUDE_QDRANT_CA_PATH where it wants them',
    'or put a qdrant on the PATH, and the stack starts it',
  ]);
}

/** The line that the cluster program prints once pods can be started. */
export const ClusterReady = z.object({
  ready: z.literal(true),
  kubeconfig: z.string(),
  namespace: z.string(),
  image: z.string(),
  templates: z.string(),
});
export type ClusterReady = z.infer<typeof ClusterReady>;

export const templatesPath = (home: string) => join(home, 'sandbox-templates.json');

/** Label that tells this home's pods from those of other homes in one namespace. */
export const installationOf = (home: string) => `local-${hash('sha256', home).slice(0, 8)}`;

/** Secret that survives restarts, so that a new controller recognises the pods of the one before. */
function tokenSecret(home: string): string {
  const path = join(home, 'sandbox-secret');
  if (!existsSync(path)) writeFileSync(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  return readFileSync(path, 'utf8').trim();
}

/** Settings of the sandbox controller for a cluster that is ready. */
export const kubernetesSettings = (home: string, cluster: ClusterReady): Record<string, string> => ({
  ETUDE_SANDBOX_DRIVER: 'kubernetes',
  ETUDE_SANDBOX_NAMESPACE: cluster.namespace,
  ETUDE_SANDBOX_KUBECONFIG_PATH: cluster.kubeconfig,
  ETUDE_SANDBOX_TEMPLATES_PATH: cluster.templates,
  ETUDE_SANDBOX_TOKEN_SECRET: tokenSecret(home),
  ETUDE_SANDBOX_INSTALLATION: installationOf(home),
});
