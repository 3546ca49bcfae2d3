import type { TestContext } from 'vitest';
import type { Faults } from './faults.js';
import { checkGivenCluster, givenCluster } from './given-cluster.js';
import { missingForImages, missingForOwnCluster } from './machine.js';
import { runningOwnCluster, startOwnCluster } from './own-cluster.js';
import type { Note } from './settings.js';

/** A Kubernetes cluster for tests. Tests may break a cluster that has `faults`. */
export interface Cluster {
  readonly kind: 'own' | 'given';
  /** Path of a kubeconfig. Its user has all rights. */
  readonly kubeconfig: string;
  /** The value of ETUDE_CLUSTER_DIR with which another process finds this cluster; '' for a given cluster. */
  readonly dir: string;
  /** @returns stdout @throws Error with the stderr of kubectl */
  readonly kubectl: (args: readonly string[], input?: string) => Promise<string>;
  /** @param archive docker-archive, as `docker save` and `buildah push` write it */
  readonly loadImage: (archive: string) => Promise<void>;
  /** Gives the pods a name server. A given cluster has a name server. */
  readonly startDns: (note: Note) => Promise<void>;
  /** Starts KEDA; needs `startDns`. A given cluster must have KEDA already. */
  readonly startKeda: (note: Note) => Promise<void>;
  /** Starts prometheus-adapter, and a Prometheus that scrapes this "host:port" of pods. Needs `startDns`. Replaces KEDA. */
  readonly startPrometheus: (note: Note, scraped: { readonly address: string; readonly namespace: string }) => Promise<void>;
  /** The address of this machine for pods; null: unknown. */
  readonly outside: string | null;
  /** null if tests must not break the cluster. */
  readonly faults: Faults | null;
  /** Removes the whole cluster; leaves a given cluster unchanged. */
  readonly stop: () => Promise<void>;
}

/** Whether tests use a given cluster. Without ETUDE_CLUSTER ("own" or "given"), KUBECONFIG means a given cluster. */
const isGiven = () => (process.env['ETUDE_CLUSTER'] ? process.env['ETUDE_CLUSTER'] === 'given' : Boolean(process.env['KUBECONFIG']));

const kubeconfigGiven = () => process.env['KUBECONFIG'] ?? '';

/** A given cluster, or a new one, which the caller must stop. @throws MachineLacks */
export async function startCluster(note: Note): Promise<Cluster> {
  if (!isGiven()) return startOwnCluster(note);
  await checkGivenCluster(kubeconfigGiven());
  return givenCluster(kubeconfigGiven());
}

/** The missing requirements of `startCluster` and its sandbox image, each with its remedy. A given cluster is not checked. */
export function missingForCluster(): string[] {
  const image = process.env['ETUDE_SANDBOX_IMAGE'] ? [] : missingForImages();
  return [...(isGiven() ? [] : missingForOwnCluster()), ...image];
}

/** The running cluster that ETUDE_CLUSTER_DIR or KUBECONFIG names. @throws Error if there is none */
export function cluster(): Cluster {
  const own = runningOwnCluster(process.env['ETUDE_CLUSTER_DIR'] ?? '');
  if (own) return own;
  if (kubeconfigGiven()) return givenCluster(kubeconfigGiven());
  throw new Error('no cluster runs; `./etude test --cluster` starts one');
}

/** For tests that break the cluster. They are skipped, with the reason, if the cluster must not be broken. */
export const breaking =
  ({ faults, kubeconfig }: Cluster) =>
  (test: (faults: Faults) => Promise<void>) =>
  async ({ skip }: TestContext): Promise<void> =>
    faults ? test(faults) : skip(`the cluster of ${kubeconfig} must not be broken; ETUDE_CLUSTER=own starts a cluster that may be`);
