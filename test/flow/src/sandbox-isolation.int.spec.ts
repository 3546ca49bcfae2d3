import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import fc from 'fast-check';
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
    ETUDE_TENANT_LIMITS: '{"*": {"sandboxes": 100}}',
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

/** Every method that names a sandbox. Executions have the same id in all tenants, so that a mix-up of tenants would show. */
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
  // The last two methods delete. If another tenant could call them, the owner would miss a file or a sandbox.
  remove: (client, name) => client.deleteSandboxFile({ name, path: 'secret.txt' }),
  close: (client, name) => client.closeSandbox({ name }),
};

interface Owned {
  readonly name: string;
  readonly tenant: Tenant;
  readonly requestId: string;
}

async function createOne(tenant: Tenant, requestId: string): Promise<Owned> {
  const { name } = await clients[tenant].createSandbox({ requestId, ttl: { seconds: 300n } });
  await clients[tenant].uploadFile(file(name, SECRET));
  return { name, tenant, requestId };
}

const statusOf = (call: Promise<unknown>) =>
  call.then(
    () => OK,
    (error: { code: number }) => error.code,
  );

async function namesOf(tenant: Tenant): Promise<string[]> {
  const names: string[] = [];
  for (let pageToken = ''; ;) {
    const page = await clients[tenant].listSandboxes({ pageSize: 3, pageToken });
    names.push(...page.sandboxes.map(({ name }) => name));
    pageToken = page.nextPageToken;
    if (pageToken === '') return names;
  }
}

const step = fc.record({ by: fc.constantFrom(...TENANTS), method: fc.constantFrom(...Object.keys(METHODS)), which: fc.nat(3) });
let runs = 0;

async function problemsOf(steps: ReadonlyArray<{ by: Tenant; method: string; which: number }>): Promise<string[]> {
  const run = `p${(runs += 1)}`;
  // Both tenants use the same request ids.
  const made = await Promise.all(TENANTS.flatMap((tenant) => [`${run}.1`, `${run}.2`].map((id) => createOne(tenant, id))));
  const problems: string[] = [];
  for (const { by, method, which } of steps) {
    const target = made[which];
    if (!target || target.tenant === by) continue;
    const status = await statusOf(METHODS[method]?.(clients[by], target.name) ?? Promise.resolve());
    if (status !== NOT_FOUND) problems.push(`${by} ${method} ${target.name} of ${target.tenant}: status ${status}`);
  }
  for (const { name, tenant, requestId } of made) {
    const client = clients[tenant];
    const there = await drain(client.downloadFile({ name, path: 'secret.txt' })).catch((error: unknown) => String(error));
    if (!there.includes('sizeBytes')) problems.push(`${name} of ${tenant} lost its file: ${there}`);
    if ((await client.createSandbox({ requestId, ttl: { seconds: 300n } })).name !== name)
      problems.push(`${tenant}'s ${requestId} is another one`);
  }
  const [acme, globex] = [await namesOf('acme'), await namesOf('globex')];
  problems.push(...acme.filter((name) => globex.includes(name)).map((name) => `${name} is listed twice`));
  for (const { name, tenant } of made) if (!(tenant === 'acme' ? acme : globex).includes(name)) problems.push(`${name} is not listed`);
  await Promise.all(made.map(({ name, tenant }) => clients[tenant].closeSandbox({ name })));
  return problems;
}

it('never finds a sandbox of another tenant, by any method', async () => {
  expect.hasAssertions();
  const property = fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
    expect(await problemsOf(steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: 8 });
}, 180_000);

it.each(Object.keys(METHODS))('lets only its owner %s a sandbox', async (method) => {
  const call = METHODS[method];
  const { name } = await createOne('acme', `one-${method}`);
  expect([
    await statusOf(call?.(clients.globex, name) ?? Promise.resolve()),
    await statusOf(call?.(clients.acme, name) ?? Promise.resolve()),
  ]).toEqual([NOT_FOUND, OK]);
  await clients.acme.closeSandbox({ name });
});

it('takes no page token of another tenant', async () => {
  const made = await Promise.all(['a', 'b'].map((id) => createOne('acme', `page-${id}`)));
  const { nextPageToken } = await clients.acme.listSandboxes({ pageSize: 1 });
  await expect(clients.globex.listSandboxes({ pageSize: 1, pageToken: nextPageToken })).rejects.toThrow('page_token');
  await Promise.all(made.map(({ name }) => clients.acme.closeSandbox({ name })));
});
