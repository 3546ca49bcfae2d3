import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startControlPlane, type ControlPlane } from '@etude/test-cluster/control-plane';
import { type Kwok, simulateNodes } from './scale-kwok.js';

/** Simulated nodes renew no lease, so no node may count as lost. The scheduler's limit of 50 requests per second would change the figures. */
const FLAGS = {
  apiserver: ['--disable-admission-plugins=TaintNodesByCondition', '--feature-gates=WatchList=false'],
  controllers: ['--controllers=*,-node-lifecycle-controller'],
  scheduler: ['--kube-api-qps=1000', '--kube-api-burst=1000'],
};
const VERBS = ['create', 'get', 'list', 'watch', 'patch', 'delete'];
const ACCOUNT = 'controller';

export interface SimulatedCluster {
  readonly plane: ControlPlane;
  readonly kwok: Kwok;
  close(): Promise<void>;
}

/** A namespace for one size of pool, and a service account with the controller's rights in it. */
export interface Tenancy {
  readonly namespace: string;
  /** Path of a kubeconfig that authenticates as the service account. */
  readonly account: string;
}

/** A real control plane with simulated nodes. In the cluster's network, all addresses of their pods belong to this machine. */
export async function startSimulatedCluster(nodes: number, note: (text: string) => void): Promise<SimulatedCluster> {
  const plane = await startControlPlane(note, FLAGS);
  try {
    await plane.inside('ip', 'route', 'add', 'local', plane.podRange, 'dev', 'lo');
    note(`adding ${nodes} simulated nodes ...`);
    const kwok = await simulateNodes(plane, nodes, note);
    const close = async () => {
      kwok.end();
      await plane.stop();
    };
    return { plane, kwok, close };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

const manifests = (namespace: string) => {
  const metadata = { name: ACCOUNT, namespace };
  const rbac = 'rbac.authorization.k8s.io';
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: `${rbac}/v1`, kind: 'Role', metadata, rules: [{ apiGroups: [''], resources: ['pods'], verbs: VERBS }] },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name: ACCOUNT },
      subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace }],
    },
  ];
};

export async function makeTenancy(plane: ControlPlane, namespace: string): Promise<Tenancy> {
  await plane.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests(namespace) }));
  const account = join(plane.dir, `account-${namespace}`);
  const token = await plane.kubectl(['create', 'token', ACCOUNT, '-n', namespace, '--duration=24h']);
  const config = {
    clusters: [{ name: ACCOUNT, cluster: { server: plane.server, 'certificate-authority': join(plane.dir, 'pki', 'ca.crt') } }],
    users: [{ name: ACCOUNT, user: { token: token.trim() } }],
    contexts: [{ name: ACCOUNT, context: { cluster: ACCOUNT, user: ACCOUNT } }],
    'current-context': ACCOUNT,
  };
  await writeFile(account, JSON.stringify(config));
  // The pods of a namespace without a default account are not admitted.
  await plane.kubectl(['wait', '--for=create', 'serviceaccount/default', '-n', namespace, '--timeout=30s']);
  return { namespace, account };
}
