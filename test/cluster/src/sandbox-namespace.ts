import type { TestProject } from 'vitest/node';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';

/** Makes a namespace under the "restricted" standard for the sandboxes of one run, and deletes it after the run. */
export default async function sandboxNamespace({ provide }: TestProject): Promise<() => Promise<void>> {
  const { kubectl } = cluster();
  const name = await makeNamespace({ kubectl }, 'conformance');
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
