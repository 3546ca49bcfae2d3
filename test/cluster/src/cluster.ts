import { kindCluster, kindWorks } from './kind-cluster.js';
import type { Faults } from './faults.js';
import { checkGivenCluster, givenCluster } from './given-cluster.js';
import { MachineLacks, missingForImages, missingForOwnCluster } from './machine.js';
import { runningOwnCluster, startOwnCluster } from './own-cluster.js';
import { clusterDir } from './settings.js';

/** A Kubernetes that tests may fill and, where `faults` says so, break. */
export interface Cluster {
  readonly kind: 'own' | 'kind' | 'given';
  /** Path of a kubeconfig whose user may do everything. */
  readonly kubeconfig: string;
  /** Set ETUDE_CLUSTER_DIR to it and another process finds this cluster. '' where it is not one of our own. */
  readonly dir: string;
  /** Answers stdout. @throws Error with kubectl's words */
  readonly kubectl: (args: readonly string[], input?: string) => Promise<string>;
  /** @param archive docker-archive, as `docker save` and `buildah push` write it */
  readonly loadImage: (archive: string) => Promise<void>;
  readonly hasImage: (name: string) => Promise<boolean>;
  /** null where the cluster is not ours to break; `noFaults` says why. */
  readonly faults: Faults | null;
  readonly noFaults: string;
  /** Nothing of it is left when this resolves; a given cluster is left as it is. */
  readonly stop: () => Promise<void>;
}

/** ETUDE_CLUSTER: own, kind or given. Without it: the one of KUBECONFIG, else kind where that works, else one of our own. */
const wanted = () => process.env['ETUDE_CLUSTER'] ?? (process.env['KUBECONFIG'] ? 'given' : 'any');

export interface StartOptions {
  /** Hears what takes long. */
  readonly note: (line: string) => void;
}

/**
 * The cluster that tests run in, started where none is given. Whoever starts it stops it.
 *
 * @throws MachineLacks
 */
export async function startCluster({ note }: StartOptions): Promise<Cluster> {
  const kind = wanted();
  if (kind === 'given') {
    const kubeconfig = process.env['KUBECONFIG'] ?? '';
    await checkGivenCluster(kubeconfig);
    return givenCluster(kubeconfig);
  }
  const made = kind === 'own' ? null : await kindCluster(note);
  if (made) return made;
  if (kind === 'kind') throw new MachineLacks('ETUDE_CLUSTER=kind', ['`kind` or a Docker daemon is missing']);
  return startOwnCluster({ note });
}

/** What keeps `startCluster` and its sandbox image from working here, each with what to do about it; a given cluster is not asked. */
export async function missingForCluster(): Promise<string[]> {
  const kind = wanted();
  const image = process.env['ETUDE_SANDBOX_IMAGE'] ? [] : missingForImages();
  if (kind === 'given' || (kind !== 'own' && (await kindWorks()))) return image;
  return [...missingForOwnCluster(), ...image];
}

/** The cluster that is kept running in a folder, started there where it is not. */
export async function keepCluster({ note }: StartOptions): Promise<Cluster> {
  const dir = clusterDir();
  return runningOwnCluster(dir) ?? startOwnCluster({ keepIn: dir, note });
}

/**
 * The cluster that was started for this process, as ETUDE_CLUSTER_DIR or KUBECONFIG name it.
 *
 * @throws Error where there is none: `./etude test --cluster` starts one
 */
export function cluster(): Cluster {
  const own = runningOwnCluster(clusterDir());
  if (own && wanted() !== 'given') return own;
  const kubeconfig = process.env['KUBECONFIG'];
  if (own && kubeconfig === own.kubeconfig) return own;
  if (kubeconfig) return givenCluster(kubeconfig);
  throw new Error('no cluster runs; `./etude test --cluster` starts one, and so does `node test/cluster/dist/main.js up`');
}
