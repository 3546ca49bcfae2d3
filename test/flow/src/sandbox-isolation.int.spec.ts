import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keyOf, writeKeys } from './tenant-keys.js';

const TENANTS = ['acme', 'globex'] as const;
type Tenant = (typeof TENANTS)[number];
type Client = ServiceClient<typeof Sandboxes>;

const OK = 0;
const NOT_FOUND = 5;
const SECRET = 'only its owner reads this';

const dir = mkdtempSync(join(tmpdir(), 'etude-isolation-'));
let stack: TestStack;
let clients: Record<Tenant, Client>;

beforeAll(async () => {
  const keysPath = join(dir, 'keys.json');
  writeKeys(keysPath, TENANTS);
  const env = {
    ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside',
    ETUDE_SANDBOX_SESSIONS_PER_TENANT_MAX: '100',
    ETUDE_SANDBOX_SESSIONS_MAX: '100',
    ETUDE_AUTH_KEYS_PATH: keysPath,
    ETUDE_AUTH_ANONYMOUS_TENANT: '',
  };
  stack = await startStack({ script: fileURLToPath(new URL('./learning.yaml', import.meta.url)), env });
  const open = (tenant: Tenant) => createServiceClient(Sandboxes, stack.address, { apiKey: keyOf(tenant) });
  clients = { acme: open('acme'), globex: open('globex') };
});
afterAll(async () => {
  for (const client of Object.values(clients)) client.close();
  await stack.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function drain(source: AsyncIterable<unknown>): Promise<string> {
  const parts: unknown[] = [];
  for await (const part of source) parts.push(part);
  return JSON.stringify(parts, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

async function* file(name: string, text: string) {
  yield { part: { case: 'header' as const, value: { name, path: 'secret.txt' } } };
  yield { part: { case: 'chunk' as const, value: Buffer.from(text) } };
}

/** Every method that names a sandbox. All executions have the same id, which must not mix the tenants up. */
const METHODS: Readonly<Record<string, (client: Client, name: string) => Promise<unknown>>> = {
  get: (client, name) => client.getSandbox({ name }),
  renew: (client, name) => client.renewSandbox({ name, ttl: { seconds: 300n } }),
  execute: (client, name) => drain(client.execute({ name, code: 'print(open("secret.txt").read())' })),
  follow: (client, name) => drain(client.execute({ name, code: 'print(1)', executionId: 'same-everywhere' })),
  cancel: (client, name) => client.cancelExecution({ name, executionId: 'same-everywhere' }),
  upload: (client, name) => client.uploadFile(file(name, SECRET)),
  download: (client, name) => drain(client.downloadFile({ name, path: 'secret.txt' })),
  stat: (client, name) => client.getSandboxFile({ name, path: 'secret.txt' }),
  files: (client, name) => client.listSandboxFiles({ name }),
  // The last two methods remove things. If another tenant could call them, the owner's calls would fail.
  remove: (client, name) => client.deleteSandboxFile({ name, path: 'secret.txt' }),
  close: (client, name) => client.closeSandbox({ name }),
};

async function createOne(tenant: Tenant, requestId: string): Promise<string> {
  const { name } = await clients[tenant].createSandbox({ requestId, ttl: { seconds: 300n } });
  await clients[tenant].uploadFile(file(name, SECRET));
  return name;
}

const statusOf = (call: Promise<unknown>) =>
  call.then(
    () => OK,
    (error: { code: number }) => error.code,
  );

it('lets only its owner use a sandbox, by every method', async () => {
  // Both tenants use the same request id.
  const [own, other] = await Promise.all(TENANTS.map((tenant) => createOne(tenant, 'same')));
  const namesOf = async (tenant: Tenant) => (await clients[tenant].listSandboxes({})).sandboxes.map(({ name }) => name);
  expect(await Promise.all(TENANTS.map(namesOf))).toEqual([[own], [other]]);
  const statusesOf = async (tenant: Tenant) => {
    const statuses: Array<readonly [string, number]> = [];
    for (const [method, call] of Object.entries(METHODS)) statuses.push([method, await statusOf(call(clients[tenant], own ?? ''))]);
    return statuses;
  };
  expect(await statusesOf('globex')).toEqual(Object.keys(METHODS).map((method) => [method, NOT_FOUND]));
  // The first methods of the owner read the file, so nothing was lost.
  expect(await statusesOf('acme')).toEqual(Object.keys(METHODS).map((method) => [method, OK]));
  await clients.globex.closeSandbox({ name: other ?? '' });
});

it('takes no page token of another tenant', async () => {
  const made = await Promise.all(['a', 'b'].map((id) => createOne('acme', `page-${id}`)));
  const { nextPageToken } = await clients.acme.listSandboxes({ pageSize: 1 });
  await expect(clients.globex.listSandboxes({ pageSize: 1, pageToken: nextPageToken })).rejects.toThrow('page_token');
  await Promise.all(made.map((name) => clients.acme.closeSandbox({ name })));
});
