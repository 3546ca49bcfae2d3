import { randomBytes } from 'node:crypto';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll } from 'vitest';
import type { Cluster } from './cluster.js';

/** A namespace under the "restricted" standard in which pods can be made. */
export async function makeNamespace({ kubectl }: Pick<Cluster, 'kubectl'>, what: string): Promise<string> {
  const name = `etude-${what}-${randomBytes(3).toString('hex')}`;
  const metadata = { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } };
  await kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }));
  const account = () => kubectl(['get', 'serviceaccount', 'default', '-n', name]).catch(() => '');
  await until(account, { timeoutMs: 150_000, everyMs: 100, what: `the default account of ${name}` });
  return name;
}

/** One namespace for all tests of a file, deleted after them. @returns a function that returns the namespace's name */
export function useNamespace(cluster: Cluster, what: string): () => string {
  let name = '';
  beforeAll(async () => void (name = await makeNamespace(cluster, what)));
  afterAll(() => cluster.kubectl(['delete', 'namespace', name, '--wait=false']));
  return () => name;
}
