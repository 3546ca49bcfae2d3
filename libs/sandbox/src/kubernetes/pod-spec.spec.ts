import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tokenDigestOf, tokenOf } from './pod-identity.js';
import { podKind, podManifest, userOf } from './pod-spec.js';
import { readTemplates, SandboxTemplate } from './sandbox-template.js';

const variety = { slot: 7, nonce: 'n', token: tokenOf('secret', 'n'), user: 123_456 };
const template = (more: object = {}) => SandboxTemplate.parse({ image: 'sandbox:1', ...more });
const kind = (more: object = {}) => podKind('default', template(more), 'etude', 'c1');
const manifest = (more: object = {}) => podManifest(kind(more), variety);
const digest = (more: object) => kind(more).digest;
const container = (more: object = {}) => manifest(more).spec.containers[0];

describe('the pod of a sandbox', () => {
  it('keeps to the restricted standard with a read-only root', () => {
    expect(manifest().spec.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 123_456,
      runAsGroup: 123_456,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container()?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      privileged: false,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('has no account token, no service links, no DNS and no restart', () => {
    expect(manifest().spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      dnsPolicy: 'None',
      activeDeadlineSeconds: 129_600,
    });
  });

  it('requests all that it may use, including disk and shared memory', () => {
    const { requests, limits } = container({ memoryMiB: 512, diskMiB: 128, cpu: '500m' })?.resources ?? {};
    expect(requests).toEqual(limits);
    expect(limits).toEqual({ cpu: '500m', memory: '744Mi', 'ephemeral-storage': '16Mi' });
  });

  it('reserves less processor time only if the template says so', () => {
    const { requests, limits } = container({ cpu: '1', cpuRequest: '50m' })?.resources ?? {};
    expect([requests?.cpu, limits?.cpu]).toEqual(['50m', '1']);
  });

  it('contains the digest of its token, not the token', () => {
    expect(JSON.stringify(manifest())).not.toContain(variety.token);
    expect(container()?.env).toContainEqual({ name: 'ETUDE_SANDBOX_TOKEN_SHA256', value: tokenDigestOf(variety.token) });
  });

  it('has no message queues and no terminals of the node', () => {
    const hidden = { name: 'nothing', readOnly: true };
    expect(container()?.volumeMounts).toEqual(
      expect.arrayContaining(['/dev/mqueue', '/dev/pts'].map((mountPath) => ({ ...hidden, mountPath }))),
    );
  });

  it('takes runtime class, user namespace and placement from the template', () => {
    const given = { runtimeClassName: 'gvisor', hostUsers: false, nodeSelector: { pool: 'a' }, tolerations: [{ operator: 'Exists' }] };
    expect(manifest(given).spec).toMatchObject(given);
  });

  it('keeps its own labels when the operator gives the same ones', () => {
    const more = { egress: ['10.0.0.0/8'], egressEnforcedBy: { 'etude.dev/state': 'claimed', 'allow-egress': 'mirror' } };
    expect(manifest(more).metadata.labels).toMatchObject({ 'etude.dev/state': 'warm', 'allow-egress': 'mirror' });
  });

  it('runs as a user within its user namespace that no other pod has', () => {
    const all = Array.from({ length: 60_000 }, (_, i) => 1_000 + i);
    expect(userOf(template({ hostUsers: false }), new Set([null, ...all.filter((user) => user !== 4_711)]))).toBe(4_711);
    const user = userOf(template(), new Set());
    expect(user).toBeGreaterThanOrEqual(100_000);
    expect(user).toBeLessThan(2 ** 31);
  });

  it('gives cells no internet sockets unless there is an egress list', () => {
    const open = { egress: ['10.0.0.0/8'], egressEnforcedBy: { 'allow-egress': 'mirror' } };
    expect(kind().filter).not.toBe(kind(open).filter);
  });

  it('changes its digest with the template, except for the warm sizes', () => {
    expect(digest({ image: 'sandbox:2' })).not.toBe(digest({}));
    expect(digest({ warm: { free: 9, max: 20 } })).toBe(digest({}));
  });
});

const read = async (text: string) => {
  const directory = await mkdtemp(join(tmpdir(), 'etude-templates-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'templates.yaml');
  await writeFile(path, text);
  return readTemplates(path);
};

describe('a file of sandbox templates', () => {
  it.each(['default:\n  image: python:1\n', '{"default": {"image": "python:1"}}'])('is YAML or JSON: %j', async (text) => {
    expect((await read(text)).default).toMatchObject({ image: 'python:1', cpu: '1', warm: { max: 16, free: 2 } });
  });

  it.each([
    ['no document', '{"default": ', /^the sandbox templates in .*templates.yaml can't be used/],
    ['a wrong field', 'default: { image: "" }', /image/],
    ['no default', 'gpu: { image: x }', /must contain a template named "default"/],
    ['an egress list that nothing enforces', 'default: { image: x, egress: [10.0.0.0/8] }', /NetworkPolicy[^]*egress/],
    ['more free pods than there may be', 'default: { image: x, warm: { free: 9, max: 8 } }', /at most max/],
  ])('is refused where it has %s', async (_what, text, message) => {
    await expect(read(text)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
  });
});
