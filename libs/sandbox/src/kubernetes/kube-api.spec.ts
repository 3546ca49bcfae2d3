import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { KubeApi, type PodManifest } from './kube-api.js';
import { apiOf, KubeServerFixture, refuse } from '../../test/kubernetes/kube-server-fixture.js';

const never = new AbortController().signal;
const manifest = (name: string): PodManifest => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: {} },
  spec: { containers: [{ name: 'sandbox', image: 'x' }] },
});

describe('KubeApi', () => {
  let server: KubeServerFixture;
  let api: KubeApi;

  beforeEach(async () => {
    server = await KubeServerFixture.start();
    api = server.api();
  });
  afterEach(async () => {
    api.close();
    await server.close();
  });

  it.each([
    [403, 'Forbidden', 'pods "p" is forbidden: exceeded quota: q, used: pods=1', 'QuotaExceeded'],
    [403, 'Forbidden', 'User "u" cannot create resource "pods"', 'Forbidden'],
    [409, 'Conflict', 'Operation cannot be fulfilled on resourcequotas "q"', 'QuotaConflict'],
  ])('maps a refusal to its reason without a retry: %i %s %s', async (status, said, message, reason) => {
    server.next('create', refuse(status, said, message));
    const full = reason === 'QuotaExceeded';
    await expect(api.createPod(manifest('pod'), never)).rejects.toMatchObject({
      code: full ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining(message),
      details: { metadata: { reason, exit: full ? 'capacity' : 'infra' } },
    });
    expect(server.asked).toHaveLength(1);
  });

  it('returns the wait that a busy server requests', async () => {
    server.next('get', refuse(429, 'TooManyRequests', 'busy', { 'retry-after': '7' }));
    await expect(api.getPod('pod')).rejects.toMatchObject({ details: { retryAfterMs: 7_000 } });
  });

  it('times out when the server sends nothing', async () => {
    const impatient = server.api(50);
    server.next('get', () => undefined);
    await expect(impatient.getPod('pod')).rejects.toThrow('failed with Timeout: no answer within 50 ms');
    impatient.close();
  });

  it('stops at once when aborted', async () => {
    const controller = new AbortController();
    server.next('create', () => controller.abort());
    await expect(api.createPod(manifest('pod'), controller.signal)).rejects.toMatchObject({ name: 'AbortError' });
    expect(server.asked).toHaveLength(1);
  });

  it('reports the error code of an unreachable server', async () => {
    await expect(apiOf('http://127.0.0.1:1').getPod('pod')).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('failed with ECONNREFUSED'),
      details: { metadata: { exit: 'infra', reason: 'ECONNREFUSED', status: '0' } },
    });
  });

  it('shows the text of a response that is no Status object', async () => {
    server.next('get', (_request, response) => {
      response.writeHead(400);
      response.end('<html>a proxy</html>');
    });
    await expect(api.getPod('pod')).rejects.toThrow('was answered with 400 Http400: <html>a proxy</html>');
  });
});

it('authenticates at the API server with a token from the plugin of a kubeconfig', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'etude-kube-'));
  const server = await KubeServerFixture.start();
  const credential = '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"plugin"}}';
  const kubeconfigPath = join(directory, 'config');
  await writeFile(
    kubeconfigPath,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'a',
      clusters: [{ name: 'a', cluster: { server: server.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'a', user: { exec: { command: 'echo', args: [credential] } } }],
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    }),
  );
  const api = KubeApi.connect({ kubeconfigPath, namespace: 'ns' });
  onTestFinished(async () => {
    api.close();
    await server.close();
    await rm(directory, { recursive: true });
  });
  server.next('get', (request, response) => {
    response.writeHead(request.headers.authorization === 'Bearer plugin' ? 404 : 401).end();
  });
  expect(await api.getPod('pod')).toBeNull();
});
