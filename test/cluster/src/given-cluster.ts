import { existsSync } from 'node:fs';
import type { Cluster } from './cluster.js';
import { run } from './command.js';

const NO_IMAGE = 'a given cluster pulls images from a registry: set ETUDE_SANDBOX_IMAGE to an image that it can pull';

/** @throws Error with the reason why tests can't use the cluster */
export async function checkGivenCluster(kubeconfig: string): Promise<void> {
  if (!existsSync(kubeconfig)) throw new Error(`KUBECONFIG names ${kubeconfig || 'nothing'}, which does not exist`);
  try {
    await run('kubectl', ['--kubeconfig', kubeconfig, 'get', '--raw', '/version', '--request-timeout=10s']);
  } catch (error) {
    const said = (error as Error).message.trim().split('\n').at(-1);
    throw new Error(`kubectl can't reach the cluster of ${kubeconfig}: ${said}`, { cause: error });
  }
  if (!process.env['ETUDE_SANDBOX_IMAGE']) throw new Error(NO_IMAGE);
}

export function givenCluster(kubeconfig: string): Cluster {
  return {
    kind: 'given',
    kubeconfig,
    dir: '',
    kubectl: (args, input) => run('kubectl', ['--kubeconfig', kubeconfig, ...args], { input }),
    loadImage: () => Promise.reject(new Error(NO_IMAGE)),
    startDns: () => Promise.resolve(),
    startKeda: () => Promise.resolve(),
    startPrometheus: () => Promise.resolve(),
    outside: null,
    faults: null,
    stop: () => Promise.resolve(),
  };
}
