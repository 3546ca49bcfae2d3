import { existsSync } from 'node:fs';
import type { Cluster } from './cluster.js';
import { run } from './command.js';

const NO_IMAGE = 'images of a given cluster come from its registry: set ETUDE_SANDBOX_IMAGE to one that it can pull';

/** @throws Error that says why nothing could be done in it */
export async function checkGivenCluster(kubeconfig: string): Promise<void> {
  if (!existsSync(kubeconfig)) throw new Error(`KUBECONFIG names ${kubeconfig || 'nothing'}, which is not there`);
  try {
    await run('kubectl', ['--kubeconfig', kubeconfig, 'get', '--raw', '/version', '--request-timeout=10s']);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Error('a given cluster needs kubectl on the PATH', { cause: error });
    const said = (error as Error).message.trim().split('\n').at(-1);
    throw new Error(`the cluster of ${kubeconfig} does not answer: ${said}`, { cause: error });
  }
  if (!process.env['ETUDE_SANDBOX_IMAGE'] && !process.env['ETUDE_CLUSTER_CONTAINERD']) throw new Error(NO_IMAGE);
}

/**
 * A cluster that somebody else runs. Its images come from a registry, or through containerd's socket where
 * ETUDE_CLUSTER_CONTAINERD names it.
 */
export function givenCluster(kubeconfig: string): Cluster {
  const socket = process.env['ETUDE_CLUSTER_CONTAINERD'];
  const ctr = async (...args: string[]) => {
    if (!socket) throw new Error(NO_IMAGE);
    return run('ctr', ['-a', socket, '-n', 'k8s.io', ...args]);
  };
  return {
    kind: 'given',
    kubeconfig,
    dir: '',
    kubectl: (args, input) => run('kubectl', ['--kubeconfig', kubeconfig, ...args], { input }),
    loadImage: async (archive) => void (await ctr('images', 'import', archive)),
    hasImage: async (name) => (await ctr('images', 'ls', '-q', `name==${name}`)).trim() !== '',
    faults: null,
    noFaults: `the cluster of ${kubeconfig} is not ours to break; ETUDE_CLUSTER=own starts one that is`,
    stop: () => Promise.resolve(),
  };
}
