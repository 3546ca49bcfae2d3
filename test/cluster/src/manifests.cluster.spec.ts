import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeApi, type PodManifest } from '@etude/sandbox/kubernetes/kube-api';
import { PodWatch } from '@etude/sandbox/kubernetes/pod-watch';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cluster } from './cluster.js';
import { checkManifests } from './kubeconform.js';
import { root } from './settings.js';

const never = new AbortController().signal;
const suffix = randomBytes(3).toString('hex');
const SANDBOXES = `etude-sandboxes-${suffix}`;
const CONTROL = `etude-${suffix}`;
const CONTROLLER = `system:serviceaccount:${CONTROL}:etude-sandbox-controller`;
const SANDBOX = `system:serviceaccount:${SANDBOXES}:etude-sandbox`;
const GROUP_VERSIONS = ['api/v1', 'apis/apps/v1', 'apis/networking.k8s.io/v1', 'apis/rbac.authorization.k8s.io/v1'];
const GROUPS: Readonly<Record<string, string>> = { networkpolicies: 'networking.k8s.io' };
const IMAGE = process.env['ETUDE_SANDBOX_IMAGE'] ?? '';

/** The manifests as they are, but in namespaces of this test. */
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
  async function can(user: string, verb: string, what: string, namespace = SANDBOXES): Promise<boolean> {
    const [resource, subresource = ''] = what.split('/');
    const attributes = { namespace, verb, group: GROUPS[what] ?? '', resource, subresource };
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups: ['system:serviceaccounts', 'system:authenticated'], resourceAttributes: attributes },
    };
    const answer = await test.kubectl(['create', '-f', '-', '-o', 'json'], JSON.stringify(review));
    return (JSON.parse(answer) as { status: { allowed: boolean } }).status.allowed;
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

  it.each(['k8s', 'k8s/outside', 'k8s/controller.example.yaml'])('says nothing in %s that the API does not know', async (path) => {
    const yaml = path.endsWith('.yaml') ? await readFile(join(root, path), 'utf8') : await test.kubectl(['kustomize', join(root, path)]);
    await expect(checkManifests(test, yaml, GROUP_VERSIONS, join(dir, 'schemas'))).resolves.toBeUndefined();
    const wrong = yaml.replace('policyTypes:', 'policyTypo:');
    await expect(checkManifests(test, wrong, GROUP_VERSIONS, join(dir, 'schemas'))).rejects.toThrow(/policyTypo/);
  });

  it('lets the controller make, watch, mark, read and end pods', async () => {
    const watch = new PodWatch(api, { selector: `test=${suffix}` });
    watch.start();
    await watch.synced(never);
    const made = await api.createPod(pod('works'), never);
    await until(() => watch.pods.get('works')?.status.conditions['Ready']?.status === 'True', { what: 'the pod' });
    expect(await api.patchPod('works', made.uid, { labels: { 'etude.dev/state': 'claimed' } })).toMatchObject({
      labels: { 'etude.dev/state': 'claimed' },
    });
    expect(await api.patchPod('works', 'another-uid', { labels: { a: 'b' } })).toBeNull();
    expect(await api.deletePod('works', { uid: 'another-uid', graceSeconds: 0 })).toBe('gone');
    expect(await api.deletePod('works', { uid: made.uid, graceSeconds: 0 })).toBe('deleted');
    await until(() => !watch.pods.has('works'), { what: 'the end of the pod' });
    await watch.close();
  });

  it('lets the controller do nothing else', async () => {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: SANDBOXES } };
    const answer = await test.kubectl(['create', '-f', '-', '-o', 'json', '--validate=false', '--as', CONTROLLER], JSON.stringify(review));
    const { resourceRules } = (JSON.parse(answer) as { status: { resourceRules: Array<{ resources: string[]; verbs: string[] }> } }).status;
    // What everybody who is authenticated may ask about themselves is left out.
    const own = resourceRules.filter(({ resources }) => !resources.some((name) => name.startsWith('self')));
    expect(own.map(({ resources, verbs }) => [resources.join(), verbs.toSorted().join()])).toEqual([
      ['pods', 'create,delete,get,list,patch,watch'],
    ]);
  });

  it.each([
    ['create', 'pods/exec'],
    ['get', 'pods/exec'],
    ['create', 'pods/attach'],
    ['create', 'pods/portforward'],
    ['create', 'pods/eviction'],
    ['patch', 'pods/ephemeralcontainers'],
    ['deletecollection', 'pods'],
    ['get', 'secrets'],
    ['create', 'serviceaccounts/token'],
    ['delete', 'networkpolicies'],
    ['patch', 'resourcequotas'],
    ['list', 'nodes'],
    ['impersonate', 'users'],
  ])('denies the controller to %s %s', async (verb, what) => {
    expect(await can(CONTROLLER, verb, what)).toBe(false);
  });

  it('denies the controller pods of another namespace, and says which verb is missing', async () => {
    expect(await can(CONTROLLER, 'list', 'pods')).toBe(true);
    expect(await can(CONTROLLER, 'list', 'pods', CONTROL)).toBe(false);
    const elsewhere = KubeApi.connect({ kubeconfigPath: join(dir, 'config'), namespace: CONTROL });
    await expect(elsewhere.listPods('')).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('lacks the verb "list" on pods'),
      details: { metadata: { reason: 'Forbidden', status: '403' } },
    });
    elsewhere.close();
  });

  it('gives the account of sandboxes no rights and no token', async () => {
    for (const [verb, what] of [
      ['get', 'pods'],
      ['get', 'secrets'],
      ['create', 'pods'],
    ] as const)
      expect(await can(SANDBOX, verb, what)).toBe(false);
    const made = await api.createPod(pod('no-token'), never);
    const volumes = await test.kubectl(['get', 'pod', 'no-token', '-n', SANDBOXES, '-o', 'jsonpath={.spec.volumes}']);
    expect(volumes).toBe('');
    await api.deletePod('no-token', { uid: made.uid, graceSeconds: 0 });
  });

  it.each([
    ['a privileged container', { securityContext: { privileged: true } }, {}],
    ['root', { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, runAsUser: 0 } }, {}],
    ["the node's network", {}, { hostNetwork: true }],
    ["the node's files", {}, { volumes: [{ name: 'host', hostPath: { path: '/' } }] }],
  ])('refuses a pod with %s, whoever makes it', async (_, container, spec) => {
    await expect(api.createPod(pod('refused', container, spec), never)).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      // Many API servers know no privileged pods at all.
      details: { metadata: { exit: 'infra', reason: expect.stringMatching(/^(PodSecurity|Invalid)$/) } },
    });
    const asAdmin = test.kubectl(['create', '-n', SANDBOXES, '-f', '-'], JSON.stringify(pod('refused', container, spec)));
    await expect(asAdmin).rejects.toThrow(/violates PodSecurity "restricted|disallowed by cluster policy/);
  });

  it('refuses a pod that is larger than one may be', async () => {
    const resources = { limits: { cpu: '64', memory: '16Mi', 'ephemeral-storage': '1Mi' } };
    await expect(api.createPod(pod('large', { resources }), never)).rejects.toMatchObject({
      details: { metadata: { reason: 'LimitRange' } },
    });
  });

  it('tells a full quota as capacity', async () => {
    await test.kubectl(['patch', 'resourcequota', 'etude-sandboxes', '-n', SANDBOXES, '-p', '{"spec":{"hard":{"pods":"1"}}}']);
    // Admission goes by what the quota's controller took over from that, whenever it did.
    const status = ['get', 'resourcequota', 'etude-sandboxes', '-n', SANDBOXES, '-o', 'jsonpath={.status.hard.pods} {.status.used.pods}'];
    await until(async () => (await test.kubectl(status)) === '1 0', {
      timeoutMs: 110_000,
      everyMs: 100,
      what: 'an empty quota of one pod',
    });
    const made = await api.createPod(pod('first'), never);
    await expect(api.createPod(pod('second'), never)).rejects.toMatchObject({
      code: 'SANDBOX_CAPACITY',
      message: expect.stringMatching(/exceeded quota: etude-sandboxes.*Raise the ResourceQuota/),
      details: { metadata: { exit: 'capacity', reason: 'QuotaExceeded', status: '403' } },
    });
    await api.deletePod('first', { uid: made.uid, graceSeconds: 0 });
  });

  it('shuts every pod off but for the port of the supervisor', async () => {
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
