import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { QUEUES } from '@etude/contracts/queues';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { chart } from './chart-rig.js';
import { cluster } from './cluster.js';
import { run } from './command.js';
import { goProgram } from './go-programs.js';
import { kubeSchemas } from './kube-schemas.js';
import { root } from './settings.js';

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: {
    readonly template?: { readonly spec: PodSpec };
    readonly replicas?: number;
    readonly triggers?: ReadonlyArray<{ readonly metadata: { readonly valueLocation: string } }>;
  };
}
interface PodSpec {
  readonly securityContext: unknown;
  readonly terminationGracePeriodSeconds: number;
  readonly containers: ReadonlyArray<{
    readonly securityContext: unknown;
    readonly resources: { readonly requests: { readonly memory: string } };
    readonly env: ReadonlyArray<{ readonly name: string; readonly value?: string }>;
  }>;
}

const note = (line: string) => process.stderr.write(`cluster: ${line}\n`);
const test = cluster();
const parsed = (text: string) =>
  parseAllDocuments(text, { version: '1.1' }) // with octal numbers, as Kubernetes reads YAML
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null)
    .toSorted((a, b) => `${a.kind}/${a.metadata.name}`.localeCompare(`${b.kind}/${b.metadata.name}`));

describe.skipIf(test.kind !== 'own')('the manifests of the chart', () => {
  let dir = '';
  let helm = '';
  const rendered = (...args: string[]) =>
    run(helm, ['template', 'etude', chart, '-n', 'etude', '--kube-version', '1.34.0', '--skip-tests', ...args]);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-manifests-'));
    helm = await goProgram('helm', note);
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it('pass helm lint', async () => {
    expect(await run(helm, ['lint', '--strict', chart])).toContain('0 chart(s) failed');
  });

  it.each(['none', 'keda', 'hpa'])('pass kubeconform with autoscaling by %s', async (kind) => {
    const location = await kubeSchemas(join(dir, 'schemas'));
    const kubeconform = await goProgram('kubeconform', note);
    const args = ['-strict', '-summary', '-output', 'json', '-schema-location', location, '-skip', 'ScaledObject'];
    const said = JSON.parse(await run(kubeconform, args, { input: await rendered('--set', `autoscaling.kind=${kind}`) })) as object;
    expect(said).toMatchObject({ resources: [], summary: { invalid: 0, errors: 0 } });
    await expect(run(kubeconform, args, { input: 'apiVersion: v1\nkind: Pod\nspec: { containers: [], mistake: 1 }\n' })).rejects.toThrow(
      /mistake/,
    );
  });

  it('are taken by an API server that enforces and warns of the restricted Pod Security', async () => {
    const namespaces = ['etude-manifests', 'etude-manifests-sandboxes'];
    const labels = Object.fromEntries(['enforce', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']));
    const items = namespaces.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }));
    await test.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    try {
      const set = ['--set', `autoscaling.kind=hpa,sandboxes.namespace=${namespaces[1]}`];
      const input = await run(helm, ['template', 'etude', chart, '-n', 'etude-manifests', '--kube-version', '1.34.0', ...set]);
      const args = ['apply', '--dry-run=server', '--validate=strict', '--warnings-as-errors', '-o', 'name', '-f', '-'];
      expect(await test.kubectl(args, input)).toContain('deployment.apps/etude-gateway');
    } finally {
      await test.kubectl(['delete', 'namespace', ...namespaces]);
    }
  });

  it('run nothing as root, without limits, probes or a grace period, and ask for at most 700 MiB', async () => {
    const pods = parsed(await rendered()).flatMap(({ spec }) => spec?.template?.spec ?? []);
    expect(pods).toHaveLength(6);
    for (const { containers, securityContext, terminationGracePeriodSeconds } of pods) {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(30);
      for (const container of containers) {
        expect(container).toMatchObject({
          livenessProbe: expect.any(Object),
          readinessProbe: expect.any(Object),
          startupProbe: expect.any(Object),
          resources: { limits: { memory: expect.stringMatching(/i$/) } },
        });
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    }
    const asked = pods.flatMap(({ containers }) => containers.map(({ resources }) => Number.parseInt(resources.requests.memory, 10)));
    const mib = asked.reduce((sum, one) => sum + one, 0);
    note(`an idle chart requests ${mib} MiB`);
    expect(mib).toBeLessThanOrEqual(700);
  });

  it('let a worker drain for its grace period less 15 s', async () => {
    const pods = parsed(await rendered('--set', 'gracePeriodSeconds=60')).filter(({ kind }) => kind === 'Deployment');
    const drains = pods.map(({ spec }) => spec?.template?.spec.containers[0]?.env.find(({ name }) => name === 'ETUDE_DRAIN_MS')?.value);
    expect(drains).toEqual(['45000', '45000', '45000', '45000']);
  });

  it('give the gateway alone the settings of JWTs', async () => {
    const names = 'jwt.claims.user=sub,jwt.claims.roles=groups,jwt.roles.etude-admins=operator';
    const set = `jwt.issuer=https://id.example,jwt.audience=etude,jwt.jwks=https://id.example/jwks,${names}`;
    const pods = parsed(await rendered('--set', set)).filter(({ kind }) => kind === 'Deployment');
    const told = pods.map(({ metadata, spec }) => {
      const env = spec?.template?.spec.containers[0]?.env.filter(({ name }) => name.startsWith('ETUDE_JWT_')) ?? [];
      return [metadata.name, Object.fromEntries(env.map(({ name, value }) => [name, value]))] as const;
    });
    const { 'etude-gateway': gateway, ...others } = Object.fromEntries(told);
    expect(Object.values(others)).toEqual([{}, {}, {}]);
    expect(gateway).toEqual({
      ETUDE_JWT_ISSUER: 'https://id.example',
      ETUDE_JWT_AUDIENCE: 'etude',
      ETUDE_JWT_JWKS: 'https://id.example/jwks',
      ETUDE_JWT_USER_CLAIM: 'sub',
      ETUDE_JWT_ROLES_CLAIM: 'groups',
      ETUDE_JWT_ROLES: '{"etude-admins":"operator"}',
    });
  });

  it('scale by the depth of every queue, and leave the number of workers to the scaler', async () => {
    const manifests = parsed(await rendered('--set', 'autoscaling.kind=keda'));
    const places = manifests.flatMap(({ spec }) => spec?.triggers ?? []).map(({ metadata }) => metadata.valueLocation);
    expect(places.toSorted()).toEqual(QUEUES.map(({ name }) => `etude_queue_depth{queue="${name}"}`).toSorted());
    const fixed = manifests.filter(({ kind, spec }) => kind === 'Deployment' && spec?.replicas !== undefined);
    expect(fixed.map(({ metadata }) => metadata.name)).toEqual(['etude-gateway']);
  });

  it.each(['trial', 'production'])('are the same by the kustomize overlay %s', async (overlay) => {
    const folder = join(root, 'k8s/etude', overlay);
    const byHelm = await rendered('-f', join(folder, 'values.yaml'));
    const byKustomize = await test.kubectl(['kustomize', '--enable-helm', `--helm-command=${helm}`, folder]);
    expect(parsed(byKustomize)).toEqual(parsed(byHelm));
  });

  it.each([
    ['replicas=-1', 'gateway.replicas=-1'],
    ['a misspelt value', 'gatewai.replicas=1'],
    ['a setting of no service', 'settings.LOG_LEVEL=info'],
    ['a URL without a scheme', 'redis.url=redis.example:6379'],
    ['a scaler that is none', 'autoscaling.kind=vpa'],
    ['an issuer of JWTs without its keys', 'jwt.issuer=https://id.example'],
    ['keys of JWTs that others could change', 'jwt.issuer=https://id.example,jwt.audience=etude,jwt.jwks=http://id.example/jwks'],
    ['a claim that is none', 'jwt.claims.team=sub'],
  ])('are refused with %s', async (_what, value) => {
    await expect(rendered('--set', value)).rejects.toThrow(/values don't meet the specifications/);
  });
});
