import type { Cluster } from './cluster.js';
import { run } from './command.js';

/**
 * A cluster that somebody else runs. Its images come from a registry, or through containerd's socket where
 * ETUDE_CLUSTER_CONTAINERD names it.
 */
export function givenCluster(kubeconfig: string): Cluster {
  const socket = process.env['ETUDE_CLUSTER_CONTAINERD'];
  const ctr = async (...args: string[]) => {
    if (!socket) throw new Error('images of a given cluster come from its registry: set ETUDE_SANDBOX_IMAGE to one that it can pull');
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
