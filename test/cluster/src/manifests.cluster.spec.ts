import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeApi, type PodManifest } from '@etude/sandbox/kubernetes/kube-api';
import { PodWatch } from '@etude/sandbox/kubernetes/pod-watch';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cluster } from './cluster.js';
import { root } from './settings.js';

const never = new AbortController().signal;
const suffix = randomBytes(3).toString('hex');
const SANDBOXES = `etude-sandboxes-${suffix}`;
const CONTROL = `etude-${suffix}`;
const CONTROLLER = `system:serviceaccount:${CONTROL}:etude-sandbox-controller`;
const SANDBOX = `system:serviceaccount:${SANDBOXES}:etude-sandbox`;
const IMAGE = process.env['ETUDE_SANDBOX_IMAGE'] ?? '';

/** The manifests with the namespaces of this test. */
const renamed = (yaml: string) =>
  yaml
    .replaceAll('namespace: etude-sandboxes', `namespace: ${SANDBOXES}`)
    .replaceAll(/kind: Namespace\nmetadata:[^]*?\n {2}name: etude\S*/g, (text) => `${text}-${suffix}`)
    .replaceAll(/(namespace|metadata\.name): etude$/gm, `$1: ${CONTROL}`);

const pod = (name: string, container: object = {}, spec: object = {}): PodManifest => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { test: suffix } },
  spec: {
    serviceAccountName: 'etude-sandbox',
    terminationGracePeriodSeconds: 0,
    securityContext: { runAsNonRoot: true, runAsUser: 1_000, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'sandbox',
        image: IMAGE,
        command: ['sleep', '600'],
        resources: { limits: { cpu: '100m', memory: '32Mi', 'ephemeral-storage': '1Mi' } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        ...container,
      },
    ],
    ...spec,
  },
});

describe('k8s/', () => {
  const test = cluster();
  let dir: string;
  let api: KubeApi;
  /** Resources and verbs in the namespace of the sandboxes, without the right of every user to review the user's own rights. */
  async function rightsOf(user: string): Promise<string[][]> {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: SANDBOXES } };
    const answer = await test.kubectl(['create', '-f', '-', '-o', 'json', '--validate=false', '--as', user], JSON.stringify(review));
    const { resourceRules } = (JSON.parse(answer) as { status: { resourceRules: Array<{ resources: string[]; verbs: string[] }> } }).status;
    const own = resourceRules.filter(({ resources }) => !resources.some((name) => name.startsWith('self')));
    return own.map(({ resources, verbs }) => [resources.join(), verbs.toSorted().join()]);
  }

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-k8s-'));
    await test.kubectl(['apply', '-f', '-'], renamed(await test.kubectl(['kustomize', join(root, 'k8s')])));
    const token = await test.kubectl(['create', 'token', 'etude-sandbox-controller', '-n', CONTROL]);
    const config = JSON.parse(await test.kubectl(['config', 'view', '--raw', '--minify', '-o', 'json'])) as Record<string, unknown>;
    const as = { ...config, users: (config['users'] as Array<{ name: string }>).map(({ name }) => ({ name, user: { token } })) };
    await writeFile(join(dir, 'config'), JSON.stringify(as), { mode: 0o600 });
    api = KubeApi.connect({ kubeconfigPath: join(dir, 'config'), namespace: SANDBOXES });
  });

  afterAll(async () => {
    api?.close();
    await test.kubectl(['delete', 'namespace', SANDBOXES, CONTROL, '--ignore-not-found', '--wait=false']);
    await rm(dir, { recursive: true });
  });

  it.each(['k8s', 'k8s/outside'])('has only fields in %s that the API knows', async (path) => {
    const whole = await test.kubectl(['kustomize', join(root, path)]);
    const apply = (yaml: string) => test.kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], yaml);
    await expect(apply(renamed(whole))).resolves.toContain('server dry run');
    await expect(apply(renamed(whole).replace('policyTypes:', 'policyTypo:'))).rejects.toThrow(/policyTypo/);
  });

  it('lets the controller create, watch, label, read and delete pods, and nothing else', async () => {
    const watch = new PodWatch(api, { selector: `test=${suffix}` });
    const [made, other] = [await api.createPod(pod('works'), never), await api.createPod(pod('other'), never)];
    await watch.start(never);
    await until(() => watch.pods.get('works')?.status.conditions['Ready']?.status === 'True', { what: 'the pod' });
    await api.labelPod('works', made.uid, { 'etude.dev/state': 'claimed' });
    expect((await api.getPod('works'))?.labels).toMatchObject({ 'etude.dev/state': 'claimed' });
    await expect(api.labelPod('works', other.uid, { a: 'b' })).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    await api.deletePod('works', { uid: other.uid, graceSeconds: 0 });
    expect(watch.pods.has('works')).toBe(true);
    for (const { name, uid } of [made, other]) await api.deletePod(name, { uid, graceSeconds: 0 });
    await until(() => watch.pods.size === 0, { what: 'the end of the pods' });
    await watch.close();
    expect(await rightsOf(CONTROLLER)).toEqual([['pods', 'create,delete,get,list,patch,watch']]);
  });

  it('denies the controller pods of another namespace and names the missing verb', async () => {
    const elsewhere = KubeApi.connect({ kubeconfigPath: join(dir, 'config'), namespace: CONTROL });
    await expect(elsewhere.listPods('')).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('cannot list resource "pods"'),
      details: { metadata: { reason: 'Forbidden', status: '403' } },
    });
    elsewhere.close();
  });

  it('gives the sandbox account no rights and no token', async () => {
    expect(await rightsOf(SANDBOX)).toEqual([]);
    const made = await api.createPod(pod('no-token'), never);
    expect(await test.kubectl(['get', 'pod', 'no-token', '-n', SANDBOXES, '-o', 'jsonpath={.spec.volumes}'])).toBe('');
    await api.deletePod('no-token', { uid: made.uid, graceSeconds: 0 });
  });

  it('refuses a root pod from every account', async () => {
    const asRoot = pod('refused', { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, runAsUser: 0 } });
    await expect(api.createPod(asRoot, never)).rejects.toMatchObject({
      message: expect.stringContaining('violates PodSecurity "restricted'),
      details: { metadata: { exit: 'infra', reason: 'Forbidden' } },
    });
    const asAdmin = test.kubectl(['create', '-n', SANDBOXES, '-f', '-'], JSON.stringify(asRoot));
    await expect(asAdmin).rejects.toThrow(/violates PodSecurity "restricted/);
  });

  it('refuses a pod above the size limit', async () => {
    const resources = { limits: { cpu: '64', memory: '16Mi', 'ephemeral-storage': '1Mi' } };
    await expect(api.createPod(pod('large', { resources }), never)).rejects.toMatchObject({
      message: expect.stringMatching(/maximum cpu usage per/),
      details: { metadata: { reason: 'Forbidden' } },
    });
  });

  it('allows only the supervisor port of each pod', async () => {
    const { items } = JSON.parse(await test.kubectl(['get', 'networkpolicies', '-n', SANDBOXES, '-o', 'json'])) as {
      items: Array<{ metadata: { name: string }; spec: object }>;
    };
    expect(Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec]))).toEqual({
      'deny-all': { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
      'controller-to-supervisor': {
        podSelector: {},
        policyTypes: ['Ingress'],
        ingress: [
          {
            from: [
              {
                namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': CONTROL } },
                podSelector: { matchLabels: { 'app.kubernetes.io/name': 'etude-sandbox-controller' } },
              },
            ],
            ports: [{ protocol: 'TCP', port: 7070 }],
          },
        ],
      },
    });
  });
});
