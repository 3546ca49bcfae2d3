import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Cli } from '../cli.js';
import type { SandboxDriver } from './stack-options.js';

type Environment = Cli['settings']['environment'];

/** Whether pods run in a cluster that somebody else runs; `test/cluster` reads the same variables. */
export const isClusterGiven = ({ ETUDE_CLUSTER, KUBECONFIG }: Environment): boolean =>
  ETUDE_CLUSTER ? ETUDE_CLUSTER === 'given' : Boolean(KUBECONFIG);

/** Of a start that compiles Kubernetes: what would else look like hanging is announced. */
export function noteFirstCluster({ out, root, settings }: Pick<Cli, 'out' | 'root' | 'settings'>, sandbox: SandboxDriver): void {
  const { environment } = settings;
  const cache = environment['ETUDE_CLUSTER_CACHE'] ?? join(root, '.etude/cache/cluster');
  if (sandbox !== 'kubernetes' || isClusterGiven(environment) || existsSync(join(cache, 'kubenode'))) return;
  out.note('the first start of a cluster of its own compiles Kubernetes and builds an image: some minutes, once');
}
