import { freePort } from '@etude/test-support/ports';
import type { TestQdrantOptions } from '@etude/test-support/qdrant';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { describeOnQdrant } from '../../test/describe-on-qdrant.js';
import { type Misbehaviour, type Proxy, startProxy } from '../../test/misbehaving-proxy.js';
import { emptyStore } from '../../test/qdrant-under-test.js';
import { ACME, recordOf, SAMPLE_MODEL, searchable, vectorOf } from '../../test/record-store-samples.js';
import type { RecordStore } from '../record-store.js';
import { openQdrantStore, type QdrantStoreOptions } from './qdrant-store.js';

/** Tests that need the stand-in, because they change how the server answers. */
const OWN = ['stand-in'] as const;
const KEY = 'key-3f8a1c';

const options = (url: string, more: Partial<QdrantStoreOptions> = {}): QdrantStoreOptions => ({
  url,
  collectionPrefix: `t${randomUUID().slice(0, 8)}`,
  timeoutMs: 30_000,
  model: SAMPLE_MODEL,
  ...more,
});

describe('a Qdrant that cannot be reached', () => {
  it('is reported with its address and a way out', async () => {
    const at = `127.0.0.1:${await freePort()}`;
    const refused = openQdrantStore(options(`http://user:secret@${at}`));
    await expect(refused).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringMatching(/check that it runs.*ECONNREFUSED/s),
    });
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(`http://${at}`) });
    await expect(refused).rejects.toMatchObject({ message: expect.not.stringContaining('secret') });
  });
});

describe('invalid options', () => {
  it('include a CA file without a certificate', async () => {
    const caPath = fileURLToPath(import.meta.url);
    await expect(openQdrantStore(options('https://127.0.0.1:9', { caPath }))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(caPath),
    });
  });
});

const answering = async (how: Misbehaviour) => {
  const proxy = await startProxy('http://127.0.0.1:9');
  onTestFinished(() => proxy.close());
  proxy.misbehave(() => how);
  return proxy;
};
const error = (text: string) => ({ status: { error: text } });
const ANOTHER = /version none of Qdrant.*check the address/;

describe('a Qdrant that answers with errors', () => {
  it.each([
    [401, error(`Invalid API key ${KEY}`), 'MEMORY_UNAVAILABLE', /refused our API key/, 1],
    [507, error('full'), 'MEMORY_FULL', /no room left; free space/, 1],
    [500, error('No space left on device: WAL buffer size exceeds available disk space'), 'MEMORY_FULL', /no room/, 1],
    [503, error('starting'), 'MEMORY_UNAVAILABLE', /failed; see its log \(503: starting\)/, 4],
    [429, error('slow down'), 'MEMORY_UNAVAILABLE', /gets too many requests/, 4],
    [400, error('Wrong input'), 'INTERNAL', /refused it \(400: Wrong input\)/, 1],
    [200, { title: 'qdrant', version: '1.16.3' }, 'MEMORY_VERSION', /version 1\.16\.3 of Qdrant.*1\.18 or newer/, 1],
    [200, '<html>a list of files</html>', 'MEMORY_VERSION', ANOTHER, 1],
    [200, { name: 'another', version: { number: '8.1' } }, 'MEMORY_VERSION', ANOTHER, 1],
    [404, 'not found', 'MEMORY_VERSION', ANOTHER, 1],
  ])('is refused for %i %j with %s', async (status, body, code, message, asked) => {
    const proxy = await answering({ status, body });
    const refused = openQdrantStore(options(proxy.url, { apiKey: KEY }));
    await expect(refused).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    await expect(refused).rejects.toMatchObject({ message: expect.not.stringContaining(KEY) });
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(proxy.url) });
    expect(proxy.seen).toHaveLength(asked);
  });

  it('fails the call if it does not answer in time', async () => {
    const proxy = await answering('hang');
    const message = expect.stringContaining('did not answer in time');
    await expect(openQdrantStore(options(proxy.url, { timeoutMs: 1_000 }))).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE', message });
    expect(proxy.seen).toHaveLength(1);
  });
});

describeOnQdrant({ name: 'with transient failures', kinds: OWN }, (server) => {
  const { collectionPrefix } = options('');
  let proxy: Proxy;
  let store: RecordStore;

  beforeEach(async () => {
    proxy = await startProxy(server().url);
    store = await openQdrantStore(options(proxy.url, { collectionPrefix }));
  });
  afterEach(async () => {
    proxy.misbehave(() => null);
    await emptyStore(store);
    await store.close();
    await proxy.close();
  });

  it('gets a request again after a lost answer, without a second effect', async () => {
    proxy.misbehave((_request, count) => (count % 2 === 1 ? 'forget' : null));
    expect(await store.write('acme', [searchable({}, 'word', 1), searchable({ key: 'k2' }, 'word', 2)])).toEqual([true, true]);
    expect(await store.write('acme', [searchable({}, 'word', 1)])).toEqual([false]);
    expect(await store.write('acme', [{ do: 'update', record: recordOf({ worth: 0.9 }), revision: 1 }])).toEqual([true]);
    const replaced = { do: 'replace', record: recordOf({ worth: 0.8 }), indexed: [{ text: 'other', vector: null }], revision: 2 } as const;
    expect(await store.write('acme', [replaced])).toEqual([true]);
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toMatchObject([{ worth: 0.8, revision: 3 }]);
    expect(await store.remove({ tenant: 'acme' }, 'semantic', {})).toBe(2);
  });

  it('gets a request again after a short outage', async () => {
    await store.write('acme', [searchable({}, 'word', 1)]);
    for (const how of ['reset', { status: 503 }, { status: 502 }, { status: 429 }] as const) {
      proxy.misbehave((_request, count) => (count <= 2 ? how : null));
      expect(await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'word', limit: 5 })).toHaveLength(1);
    }
  });

  it('fails every call during an outage, and answers after it', async () => {
    await store.write('acme', [searchable({}, 'word', 1)]);
    proxy.misbehave(() => 'reset');
    const down = { code: 'MEMORY_UNAVAILABLE' };
    await expect(store.write('acme', [searchable({ key: 'k2' }, 'word', 1)])).rejects.toMatchObject(down);
    await expect(store.search(ACME, 'semantic', { vector: null, text: 'word', limit: 5 })).rejects.toMatchObject(down);
    await expect(store.check()).rejects.toMatchObject(down);
    proxy.misbehave(() => null);
    await store.check();
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(1);
  });

  it('stores no part of a write when its disk is full', async () => {
    proxy.misbehave(({ method }) => (method === 'PUT' ? { status: 507 } : null));
    await expect(store.write('acme', [searchable({}, 'word', 1)])).rejects.toMatchObject({ code: 'MEMORY_FULL' });
    proxy.misbehave(() => null);
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(0);
  });
});

const TLS_FOLDER = join(tmpdir(), `etude-tls-${randomUUID()}`);

function selfSigned(): NonNullable<TestQdrantOptions['tls']> {
  mkdirSync(TLS_FOLDER);
  const [key, certificate] = [join(TLS_FOLDER, 'key.pem'), join(TLS_FOLDER, 'certificate.pem')];
  const files = ['-keyout', key, '-out', certificate];
  const subject = ['-subj', '/CN=qdrant', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...subject], { stdio: 'ignore' });
  return { key, certificate };
}

const guarded = { kinds: ['stand-in'], options: () => ({ apiKey: KEY, tls: selfSigned() }) } as const;
describeOnQdrant({ name: 'with a key and TLS', ...guarded }, (server) => {
  afterAll(() => rmSync(TLS_FOLDER, { recursive: true, force: true }));

  it('answers only with the right CA file and API key', async () => {
    await expect(openQdrantStore(options(server().url, { apiKey: KEY }))).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringMatching(/ETUDE_QDRANT_CA_PATH.*SELF_SIGNED/),
    });
    await expect(openQdrantStore(options(server().url, { apiKey: KEY, caPath: join(TLS_FOLDER, 'none.pem') }))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    const { caPath } = server();
    await expect(openQdrantStore(options(server().url, { apiKey: 'wrong', caPath }))).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringContaining('refused our API key'),
    });
    const store = await openQdrantStore(options(server().url, { apiKey: KEY, caPath }));
    onTestFinished(() => store.close());
    expect(await store.write('acme', [searchable({}, 'word', 1)])).toEqual([true]);
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toHaveLength(1);
  });
});
