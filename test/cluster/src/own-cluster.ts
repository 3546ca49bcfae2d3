import { join } from 'node:path';
import type { Cluster } from './cluster.js';
import { startPlace, stopPlace } from './control-plane.js';
import { becomesReady, ctr, kubectl } from './control.js';
import { type Daemon, startDaemon } from './daemons.js';
import { startDns } from './dns.js';
import { faultsOf } from './faults.js';
import { writeNodeConfig } from './node-config.js';
import { startKeda, startPrometheus } from './scalers.js';
import { isRunning, kubeconfigOf, type Place, readPlace } from './place.js';
import type { Note } from './settings.js';

/** Starts one Kubernetes node and waits until it takes pods. The node ends with this process. @throws the errors of `startPlace` */
export const startOwnCluster = async (note: Note): Promise<Cluster> => ownCluster(await startPlace(note, startPrograms));

async function startPrograms(place: Place): Promise<void> {
  const start = (...names: Daemon[]) => Promise.all(names.map((name) => startDaemon(place, name)));
  const ready = (...names: Daemon[]) => Promise.all(names.map((name) => becomesReady(place, name)));
  await writeNodeConfig(place);
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
    faults: faultsOf(place),
    startDns: (note) => startDns(place, note),
    startKeda: (note) => startKeda(place, note),
    startPrometheus: (note, scraped) => startPrometheus(place, note, scraped),
    outside: place.network.hostIp,
    stop: () => stopPlace(place),
  };
}

export function runningOwnCluster(dir: string): Cluster | null {
  const place = readPlace(dir);
  return place && isRunning(place.init) ? ownCluster(place) : null;
}
