import { randomBytes } from 'node:crypto';
import { until } from '@etude/test-support/until';
import type { Cluster } from './cluster.js';

/** A namespace in which pods can be made; what they may ask for is a level of the Pod Security Standards. */
export async function makeNamespace(
  { kubectl }: Pick<Cluster, 'kubectl'>,
  what: string,
  level: 'baseline' | 'restricted' = 'restricted',
): Promise<string> {
  const name = `etude-${what}-${randomBytes(3).toString('hex')}`;
  const metadata = { name, labels: { 'pod-security.kubernetes.io/enforce': level } };
  await kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }));
  const account = () => kubectl(['get', 'serviceaccount', 'default', '-n', name]).catch(() => '');
  await until(account, { timeoutMs: 150_000, everyMs: 100, what: `the default account of ${name}` });
  return name;
}
