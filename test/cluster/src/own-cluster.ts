import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import type { Cluster } from './cluster.js';
import { becomesReady, ctr, kubectl } from './control.js';
import { type Daemon, startDaemon } from './daemons.js';
import { faultsOf } from './faults.js';
import { writeIdentities } from './identities.js';
import { kubenode } from './kubenode.js';
import { MachineLacks, missingForOwnCluster } from './machine.js';
import { enterNamespaces, joinNetwork, leaveNamespaces } from './namespaces.js';
import { cgroupDirsLeft, writeNodeConfig } from './node-config.js';
import { identify, isRunning, kubeconfigOf, type Place, readPlace, writePlace } from './place.js';

const PREFIX = 'etude-cluster-';

export interface OwnClusterOptions {
  /** Keeps running after this process, in this folder; a temporary one that ends with this process otherwise. */
  readonly keepIn?: string;
  readonly note: (line: string) => void;
}

/**
 * Starts one node of Kubernetes on this machine and waits until it takes pods.
 *
 * @throws MachineLacks; Error saying which program did not become ready and its last words
 */
export async function startOwnCluster({ keepIn, note }: OwnClusterOptions): Promise<Cluster> {
  const missing = missingForOwnCluster();
  if (missing.length > 0) throw new MachineLacks('no cluster can be started here', missing);
  await sweep();
  const programs = await kubenode(note);
  const dir = keepIn ?? (await mkdtemp(join(tmpdir(), PREFIX)));
  for (const name of ['log', 'pids', 'pki']) await mkdir(join(dir, name), { recursive: true });
  const id = crypto.randomUUID().slice(0, 8);
  const init = await enterNamespaces(programs, dir, keepIn === undefined);
  try {
    const owner = keepIn === undefined ? identify(process.pid) : null;
    const place: Place = { dir, id, programs, network: await joinNetwork(init), init, owner };
    writePlace(place);
    await startPrograms(place);
    return ownCluster(place);
  } catch (error) {
    // The folder is kept: its logs say more than the message.
    await leaveNamespaces(init);
    throw error;
  }
}

async function startPrograms(place: Place): Promise<void> {
  const start = (...names: Daemon[]) => Promise.all(names.map((name) => startDaemon(place, name)));
  const ready = (...names: Daemon[]) => Promise.all(names.map((name) => becomesReady(place, name)));
  await Promise.all([writeIdentities(place.dir, place.network), writeNodeConfig(place)]);
  await start('etcd', 'containerd', 'apiserver');
  await ready('containerd', 'apiserver');
  await Promise.all([
    ctr(place, 'images', 'import', join(place.programs, 'pause.tar')),
    start('controllers', 'scheduler', 'kubelet', 'proxy'),
  ]);
  await ready('kubelet', 'controllers');
}

function ownCluster(place: Place): Cluster {
  return {
    kind: 'own',
    kubeconfig: kubeconfigOf(place.dir),
    dir: place.dir,
    kubectl: (args, input) => kubectl(place, args, input),
    loadImage: async (archive) => void (await ctr(place, 'images', 'import', archive)),
    hasImage: async (name) => (await ctr(place, 'images', 'ls', '-q', `name==${name}`)).trim() !== '',
    faults: faultsOf(place),
    noFaults: '',
    stop: () => stopOwnCluster(place),
  };
}

/** The cluster that runs in this folder; null where none does. */
export function runningOwnCluster(dir: string): Cluster | null {
  const place = readPlace(dir);
  return place && isRunning(place.init) ? ownCluster(place) : null;
}

/** Ends it and removes its folder. Pods are not asked: nothing of them outlives the namespaces. */
async function stopOwnCluster(place: Place): Promise<void> {
  await leaveNamespaces(place.init);
  for (const dir of cgroupDirsLeft(place)) await until(() => removeGroups(dir), { everyMs: 50, what: `the end of what ran in ${dir}` });
  await rm(place.dir, { recursive: true, force: true, maxRetries: 5 });
}

/** A control group goes by rmdir, from the innermost on; false while a process of it is still ending. */
async function removeGroups(dir: string): Promise<boolean> {
  if (!existsSync(dir)) return true;
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory() && !(await removeGroups(join(dir, entry.name)))) return false;
  }
  return rmdir(dir).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return true;
      if (error.code === 'EBUSY') return false;
      throw error;
    },
  );
}

/** Removes what clusters left whose owner was killed: folders and empty control groups, since the kernel ended all else. */
async function sweep(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const place = readPlace(join(tmpdir(), name));
    if (place?.owner && !isRunning(place.owner)) await stopOwnCluster(place);
  }
}
