import type { TestProject } from 'vitest/node';
import { cluster } from './cluster.js';
import { makeNamespace } from './pod-namespace.js';

/** A namespace under the "restricted" standard for the sandboxes of one run; gone with all in it when the run ends. */
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
