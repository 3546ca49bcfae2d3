import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster } from './cluster.js';
import { run } from './command.js';

/** Whether `kind` and a Docker daemon are there. */
export const kindWorks = (): Promise<boolean> =>
  Promise.all([run('kind', ['version']), run('docker', ['info'])]).then(
    () => true,
    () => false,
  );

/** A cluster in Docker, started by `kind`; null where either does not work. */
export async function kindCluster(note: (line: string) => void): Promise<Cluster | null> {
  if (!(await kindWorks())) return null;
  const dir = await mkdtemp(join(tmpdir(), 'etude-kind-'));
  const [name, kubeconfig] = [`etude-${process.pid}`, join(dir, 'kubeconfig')];
  const stop = async () => {
    await run('kind', ['delete', 'cluster', '--name', name, '--kubeconfig', kubeconfig]);
    await rm(dir, { recursive: true, force: true });
  };
  note('starting a cluster with kind');
  try {
    await run('kind', ['create', 'cluster', '--name', name, '--kubeconfig', kubeconfig, '--wait', '120s']);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kind: 'kind',
    kubeconfig,
    dir: '',
    kubectl: (args, input) => run('kubectl', ['--kubeconfig', kubeconfig, ...args], { input }),
    loadImage: async (archive) => void (await run('kind', ['load', 'image-archive', archive, '--name', name])),
    hasImage: async (image) => (await run('docker', ['exec', `${name}-control-plane`, 'crictl', 'images', '-q', image])).trim() !== '',
    faults: null,
    noFaults: "a cluster of kind can't be broken from here; ETUDE_CLUSTER=own starts one that can",
    stop,
  };
}
