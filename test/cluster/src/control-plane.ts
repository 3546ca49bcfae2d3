import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { becomesReady, kubectl } from './control.js';
import { type Daemon, startDaemon } from './daemons.js';
import { writeIdentities } from './identities.js';
import { kubenode } from './kubenode.js';
import { MachineLacks, missingForOwnCluster } from './machine.js';
import { enterNamespaces, inside, joinNetwork, leaveNamespaces } from './namespaces.js';
import { removeGroupsOf } from './node-config.js';
import { identify, isRunning, kubeconfigOf, type Place, readPlace, writePlace } from './place.js';
import type { Note } from './settings.js';

const PREFIX = 'etude-cluster-';

/** The programs that nodes, real or simulated, report to. */
const PROGRAMS = ['apiserver', 'controllers', 'scheduler'] as const satisfies readonly Daemon[];

/** A Kubernetes without a node, in its own namespaces. It ends with this process. */
export interface ControlPlane {
  readonly dir: string;
  readonly kubeconfig: string;
  /** The URL of the API server. */
  readonly server: string;
  /** A range of addresses without a route on this machine, for the pods of simulated nodes. */
  readonly podRange: string;
  readonly kubectl: (args: readonly string[], input?: string) => Promise<string>;
  /** Runs a program in the network of the cluster to its end. */
  readonly inside: (command: string, ...args: string[]) => Promise<string>;
  /** The words before a command that run it in the network of the cluster, with the files and processes of this machine. */
  readonly enter: readonly string[];
  /** Process id, on this machine, of process 1 of the cluster's namespaces. All programs of the cluster descend from it. */
  readonly init: number;
  /** Resolves when every process and file of the cluster is gone. */
  readonly stop: () => Promise<void>;
}

/** @throws MachineLacks; Error with the name of the program that did not become ready, and the end of its log */
export async function startPlace(note: Note, startPrograms: (place: Place) => Promise<void>): Promise<Place> {
  const missing = missingForOwnCluster();
  if (missing.length > 0) throw new MachineLacks('no cluster can be started here', missing);
  await sweep();
  const programs = await kubenode(note);
  const dir = await mkdtemp(join(tmpdir(), PREFIX));
  for (const name of ['log', 'pids', 'pki']) await mkdir(join(dir, name), { recursive: true });
  const id = crypto.randomUUID().slice(0, 8);
  const init = await enterNamespaces(programs, dir);
  try {
    const place: Place = { dir, id, programs, network: await joinNetwork(init), init, owner: identify(process.pid) };
    writePlace(place);
    await writeIdentities(dir, place.network);
    await startPrograms(place);
    return place;
  } catch (error) {
    // The folder stays, because the logs in it say more than the error.
    await leaveNamespaces(init);
    throw error;
  }
}

/** The pods end with the cluster's namespaces. */
export async function stopPlace(place: Place): Promise<void> {
  await leaveNamespaces(place.init);
  await removeGroupsOf(place);
  await rm(place.dir, { recursive: true, force: true, maxRetries: 5 });
}

/** Removes folders and empty control groups of clusters whose owner was killed. The kernel has ended the rest. */
async function sweep(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const place = name.startsWith(PREFIX) ? readPlace(join(tmpdir(), name)) : null;
    if (place && !isRunning(place.owner)) await stopPlace(place);
  }
}

/** Returns once namespaces can be made. @param flags in addition to those of `daemons.ts` @throws the errors of `startPlace` */
export async function startControlPlane(
  note: Note,
  flags: Readonly<Record<(typeof PROGRAMS)[number], readonly string[]>>,
): Promise<ControlPlane> {
  const place = await startPlace(note, async (started) => {
    await startDaemon(started, 'etcd');
    for (const name of PROGRAMS) {
      await startDaemon(started, name, flags[name]);
      await becomesReady(started, name);
    }
  });
  const { dir, network, init } = place;
  return {
    dir,
    kubeconfig: kubeconfigOf(dir),
    server: `https://${network.nodeIp}:6443`,
    podRange: network.nodeIp.replace(/\.\d+\.\d+$/, '.0.0/17'),
    kubectl: (args, input) => kubectl(place, args, input),
    inside: (command, ...args) => inside(place, command, ...args),
    enter: ['nsenter', '-t', String(init.pid), '-n', '--'],
    init: init.pid,
    stop: () => stopPlace(place),
  };
}
