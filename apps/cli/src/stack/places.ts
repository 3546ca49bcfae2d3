import { hash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

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
const installationOf = (home: string) => `local-${hash('sha256', home).slice(0, 8)}`;

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
