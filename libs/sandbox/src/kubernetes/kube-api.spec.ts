import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KubeApi, type PodManifest } from './kube-api.js';
import { KubeClient, plainConfig, readConfig } from './kube-client.js';
import { outcomeUnknown } from './kube-error.js';
import { type Answer, cut, KubeServerFixture, refuse } from '../../test/kubernetes/kube-server-fixture.js';

const never = new AbortController().signal;
const NO_RETRY = { attemptsMax: 1, backoffMinMs: 1, backoffMaxMs: 1, retryAfterMaxMs: 1 };
const manifest = (name: string, nonce = '1'): PodManifest => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { nonce } },
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

  /** The server does what it is asked, and the answer is lost. */
  const doneButCut =
    (nonce = '1'): Answer =>
    (request) => {
      server.put('pod', 'Pending', { nonce });
      request.socket.destroy();
    };

  it('makes a pod with one request', async () => {
    expect(await api.createPod(manifest('pod'), never)).toMatchObject({ name: 'pod', uid: 'uid-1', phase: 'Pending' });
    expect(server.asked.map(({ kind }) => kind)).toEqual(['create']);
  });

  it('finds a pod again whose making was not answered', async () => {
    server.next('create', doneButCut());
    expect(await api.createPod(manifest('pod'), never)).toMatchObject({ name: 'pod', uid: 'uid-1' });
    expect(server.asked.map(({ kind }) => kind)).toEqual(['create', 'get']);
  });

  it('makes a pod again that was not made although nobody said so', async () => {
    server.next('create', refuse(504, 'Timeout'));
    expect(await api.createPod(manifest('pod'), never)).toMatchObject({ name: 'pod' });
    expect(server.asked.map(({ kind }) => kind)).toEqual(['create', 'get', 'create']);
  });

  it('finds a pod again that was made after it was looked for', async () => {
    server.next('create', cut);
    server.next('get', (request, response, body) => {
      refuse(404, 'NotFound')(request, response, body);
      server.put('pod', 'Pending', { nonce: '1' });
    });
    expect(await api.createPod(manifest('pod'), never)).toMatchObject({ uid: 'uid-1' });
    expect(server.asked.map(({ kind }) => kind)).toEqual(['create', 'get', 'create', 'get']);
  });

  it('takes no pod of the same name for the one it wanted', async () => {
    server.next('create', doneButCut('of another'));
    await expect(api.createPod(manifest('pod'), never)).rejects.toMatchObject({ details: { metadata: { reason: 'AlreadyExists' } } });
    server.put('there', 'Running', { nonce: '1' });
    await expect(api.createPod(manifest('there'), never)).rejects.toMatchObject({ details: { metadata: { reason: 'AlreadyExists' } } });
  });

  it('says that a pod may exist when nobody could tell', async () => {
    for (let i = 0; i < 3; i++) server.next('create', cut);
    const error: unknown = await api.createPod(manifest('pod'), never).catch((thrown: unknown) => thrown);
    expect(outcomeUnknown(error)).toBe(true);
    expect(error).toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('may have been carried out all the same'),
    });
  });

  it('makes a pod again that lost the race for the quota', async () => {
    server.next('create', refuse(409, 'Conflict', 'Operation cannot be fulfilled on resourcequotas "q"'));
    expect(await api.createPod(manifest('pod'), never)).toMatchObject({ name: 'pod' });
  });

  it.each([
    [refuse(403, 'Forbidden', 'pods "p" is forbidden: exceeded quota: q, used: pods=1'), 'SANDBOX_CAPACITY', 'QuotaExceeded', 'capacity'],
    [
      refuse(403, 'Forbidden', 'pods "p" is forbidden: violates PodSecurity "restricted:latest"'),
      'SANDBOX_UNAVAILABLE',
      'PodSecurity',
      'infra',
    ],
    [refuse(403, 'Forbidden', 'User "u" cannot create resource "pods"'), 'SANDBOX_UNAVAILABLE', 'Forbidden', 'infra'],
    [refuse(422, 'Invalid', 'Pod "p" is invalid'), 'SANDBOX_UNAVAILABLE', 'Invalid', 'infra'],
    [refuse(404, 'NotFound', 'namespaces "ns" not found'), 'SANDBOX_UNAVAILABLE', 'NotFound', 'infra'],
  ])('tells refusals apart and never repeats them: %#', async (answer, code, reason, exit) => {
    server.next('create', answer);
    await expect(api.createPod(manifest('pod'), never)).rejects.toMatchObject({ code, details: { metadata: { reason, exit } } });
    expect(server.asked).toHaveLength(1);
  });

  it('names the verb that the Role lacks', async () => {
    server.next('list', refuse(403, 'Forbidden', 'no'));
    await expect(api.listPods('a=b')).rejects.toThrow(
      'GET /api/v1/namespaces/ns/pods?labelSelector=a%3Db was answered with 403 Forbidden: no. The Role of the controller lacks the verb "list" on pods, see k8s/.',
    );
  });

  it('repeats reads, deletes and patches while the server is away', async () => {
    server.put('pod');
    for (const kind of ['get', 'patch', 'delete'] as const) {
      server.next(kind, cut);
      server.next(kind, refuse(503, 'ServiceUnavailable'));
    }
    expect(await api.getPod('pod')).toMatchObject({ name: 'pod' });
    expect(await api.patchPod('pod', 'uid-1', { labels: { a: 'b' } })).toMatchObject({ name: 'pod' });
    expect(await api.deletePod('pod', { uid: 'uid-1', graceSeconds: 0 })).toBe('deleted');
    expect(server.asked).toHaveLength(9);
  });

  it('deletes only the pod that was meant', async () => {
    server.put('pod');
    expect(await api.deletePod('pod', { uid: 'another', graceSeconds: 0 })).toBe('gone');
    expect(await api.deletePod('pod', { uid: 'uid-1', graceSeconds: 0 })).toBe('deleted');
    expect(await api.deletePod('pod', { uid: 'uid-1', graceSeconds: 0 })).toBe('gone');
    expect(JSON.parse(server.asked[0]?.body ?? '')).toMatchObject({ gracePeriodSeconds: 0, preconditions: { uid: 'another' } });
  });

  it('waits as long as a busy server asks, up to its limit', async () => {
    server.next('get', refuse(429, 'TooManyRequests', 'busy', { 'retry-after': '3600' }));
    const began = performance.now();
    expect(await api.getPod('pod')).toBeNull();
    expect(performance.now() - began).toBeGreaterThanOrEqual(199);
  });

  it('gives up a server that says nothing', async () => {
    const impatient = server.api({ requestTimeoutMs: 50 });
    for (let i = 0; i < 3; i++) server.next('get', () => undefined);
    await expect(impatient.getPod('pod')).rejects.toThrow('failed with Timeout: no answer within 50 ms');
    impatient.close();
  });

  it('stops at once when it is aborted', async () => {
    const controller = new AbortController();
    server.next('get', () => controller.abort());
    await expect(api.getPod('pod', controller.signal)).rejects.toMatchObject({ name: 'AbortError' });
    expect(server.asked).toHaveLength(1);
  });

  it('says what a server is that cannot be reached', async () => {
    const nobody = new KubeApi(new KubeClient(() => plainConfig('http://127.0.0.1:1')), 'ns', { retry: NO_RETRY });
    await expect(nobody.getPod('pod')).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('failed with ECONNREFUSED'),
      details: { metadata: { exit: 'infra', reason: 'ECONNREFUSED', status: '0' } },
    });
  });

  it('shows the text of an answer that is not the API', async () => {
    server.next('get', (_request, response) => {
      response.writeHead(400);
      response.end('<html>a proxy</html>');
    });
    await expect(api.getPod('pod')).rejects.toThrow('was answered with 400 Http400: <html>a proxy</html>');
  });
});

describe('access to the API server', () => {
  let directory: string;
  let server: KubeServerFixture;
  const tokens: Array<string | undefined> = [];
  const believing =
    (token: string): Answer =>
    (request, response, body) => {
      tokens.push(request.headers.authorization);
      if (request.headers.authorization === `Bearer ${token}`) refuse(404, 'NotFound')(request, response, body);
      else refuse(401, 'Unauthorized')(request, response, body);
    };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'etude-kube-'));
    server = await KubeServerFixture.start();
    tokens.length = 0;
  });
  afterEach(async () => {
    await server.close();
    await rm(directory, { recursive: true });
  });

  it('reads the token again that the server does not believe any more', async () => {
    await writeFile(join(directory, 'token'), 'old');
    await writeFile(join(directory, 'ca.crt'), '');
    const api = KubeApi.connect({ namespace: 'ns', server: server.url, accountPath: directory });
    server.next('get', believing('old'));
    expect(await api.getPod('pod')).toBeNull();
    await writeFile(join(directory, 'token'), 'new');
    for (let i = 0; i < 2; i++) server.next('get', believing('new'));
    expect(await api.getPod('pod')).toBeNull();
    expect(tokens).toEqual(['Bearer old', 'Bearer old', 'Bearer new']);
    api.close();
  });

  it('asks the plugin of a kubeconfig for a token, and again when it is not believed', async () => {
    await writeFile(join(directory, 'token'), 'first');
    const credential = '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}';
    await writeFile(
      join(directory, 'config'),
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'a',
        clusters: [{ name: 'a', cluster: { server: server.url, 'insecure-skip-tls-verify': true } }],
        users: [{ name: 'a', user: { exec: { command: 'sh', args: ['-c', `printf '${credential}' "$(cat ${directory}/token)"`] } } }],
        contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      }),
    );
    const api = KubeApi.connect({ kubeconfigPath: join(directory, 'config'), namespace: 'ns' });
    server.next('get', believing('first'));
    expect(await api.getPod('pod')).toBeNull();
    await writeFile(join(directory, 'token'), 'second');
    for (let i = 0; i < 2; i++) server.next('get', believing('second'));
    expect(await api.getPod('pod')).toBeNull();
    expect(tokens).toEqual(['Bearer first', 'Bearer first', 'Bearer second']);
    api.close();
  });

  it('gives up credentials that never come', async () => {
    const hanging = plainConfig(server.url);
    hanging.applyToHTTPSOptions = () => new Promise(() => undefined);
    const api = new KubeApi(new KubeClient(() => hanging), 'ns', { requestTimeoutMs: 30, retry: NO_RETRY });
    await expect(api.getPod('pod')).rejects.toThrow('no answer within 30 ms');
  });

  it('says which file is missing', async () => {
    const none = join(directory, 'none');
    const account = KubeApi.connect({ namespace: 'ns', server: server.url, accountPath: none }, { retry: NO_RETRY });
    await expect(account.getPod('pod')).rejects.toThrow(/ENOENT/);
    expect(() => readConfig({ kubeconfigPath: none })).toThrow(/ENOENT/);
  });
});
