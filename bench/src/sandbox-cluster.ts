import { randomUUID } from 'node:crypto';
import { startCluster } from '@etude/test-cluster/cluster';
import { sandboxImage } from '@etude/test-cluster/images';

export interface BenchCluster {
  readonly place: { readonly kubeconfigPath: string; readonly namespace: string; readonly image: string };
  close(): Promise<void>;
}

const namespaceOf = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
});

/** The cluster of KUBECONFIG, or a new one for this run, with the image of this working tree and a namespace for the bench. */
export async function benchCluster(note: (text: string) => void): Promise<BenchCluster> {
  const cluster = await startCluster(note);
  try {
    const image = await sandboxImage(note);
    if (image.archive) await cluster.loadImage(image.archive);
    const namespace = `bench-${randomUUID().slice(0, 8)}`;
    await cluster.kubectl(['create', '-f', '-'], JSON.stringify(namespaceOf(namespace)));
    const close = async () => {
      await cluster.kubectl(['delete', 'namespace', namespace, '--wait=false']);
      await cluster.stop();
    };
    return { place: { kubeconfigPath: cluster.kubeconfig, namespace, image: image.name }, close };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
