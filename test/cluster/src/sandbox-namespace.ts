import { randomUUID } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { cluster } from './cluster.js';

/** A namespace under the "restricted" standard for the sandboxes of one run; gone with all in it when the run ends. */
export default async function sandboxNamespace({ provide }: TestProject): Promise<() => Promise<void>> {
  const name = `conformance-${randomUUID().slice(0, 8)}`;
  const namespace = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  };
  const { kubectl } = cluster();
  await kubectl(['create', '-f', '-'], JSON.stringify(namespace));
  provide('sandboxNamespace', name);
  return async () => {
    await kubectl(['delete', 'namespace', name, '--wait=false']);
  };
}

declare module 'vitest' {
  interface ProvidedContext {
    sandboxNamespace: string;
  }
}
