import type { ExecuteEvent } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Language, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  refusal,
  type SandboxesClient,
  startInstallation,
  type TestController,
  type TestInstallation,
  TOKEN,
} from './controller.harness.js';

let installation: TestInstallation;
let controller: TestController;
let client: SandboxesClient;
beforeAll(async () => {
  installation = await startInstallation();
  controller = await installation.start();
  client = controller.client();
});
afterAll(() => installation.close());

const MIB = 1024 * 1024;

async function create(by: SandboxesClient = client, more: object = {}): Promise<string> {
  const { name } = await by.createSandbox(more);
  onTestFinished(async () => void (await by.closeSandbox({ name }).catch(() => undefined)));
  return name;
}

function textOf({ event }: ExecuteEvent): string {
  if (event.case === 'stdout' || event.case === 'stderr') return event.value;
  return event.case === 'result' ? `=${event.value.exit}` : `<${event.case}>`;
}

const run = async (name: string, code: string, more: object = {}) =>
  (await Array.fromAsync(client.execute({ name, code, ...more }))).map(textOf).join('');

async function* upload(name: string, path: string, bytes: Uint8Array, offset = 0) {
  yield { part: { case: 'header' as const, value: { name, path, offset: BigInt(offset) } } };
  for (let at = offset; at < bytes.length; at += MIB / 2)
    yield { part: { case: 'chunk' as const, value: bytes.subarray(at, at + MIB / 2) } };
}

describe('a session over gRPC', () => {
  it('shows the Working Memory where it was made with a scratchpad, also after its interpreter was lost', async () => {
    const name = await create(client, { scratchpad: true });
    const memoryAfter = async (code: string) => {
      const { event } = (await Array.fromAsync(client.execute({ name, code }))).at(-1)!;
      return event.case === 'result' ? event.value.workingMemory : event.case;
    };
    expect(await memoryAfter('1')).toBe('');
    const stored = '## Working Memory\n\n### Stored Values\n- best: 41';
    expect(await memoryAfter('store("best", 41)')).toBe(stored);
    expect(await memoryAfter('import os; os.kill(os.getpid(), 9)')).toBe('');
    expect(await memoryAfter('assert recall("best") == best')).toBe(stored);
    expect(await run(await create(), 'store')).toContain('NameError');
  });

  it('lets its caller answer calls of tools', async () => {
    const name = await create();
    const call = { name, executionId: 'e-tools', number: 1 };
    const told: string[] = [];
    const tools = [{ name: 'add', parameters: ['a'], description: '' }];
    for await (const { event } of client.execute({ ...call, code: 'print(add(a=[1, 2]))', tools })) {
      if (event.case === 'stdout') told.push(event.value);
      if (event.case !== 'toolCall') continue;
      told.push(event.value.tool, JSON.stringify(event.value.arguments['a']?.kind.case));
      expect((await refusal(client.answerToolCall(call))).code).toBe('INVALID_ARGUMENT');
      const answer = { case: 'result' as const, value: { kind: { case: 'stringValue' as const, value: 'sum' } } };
      await client.answerToolCall({ ...call, answer });
      await client.answerToolCall({ ...call, answer: { case: 'error', value: 'late' } });
    }
    expect(told).toEqual(['add', '"listValue"', 'sum\n']);
  });

  it('names the fields of a request that are wrong, and keeps the sandbox', async () => {
    const name = await create(client, { limits: { memoryMib: 128 } });
    const execute = (more: object) => Array.fromAsync(client.execute({ name, code: '1', ...more }));
    const labels = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, '']));
    const wrong: ReadonlyArray<readonly [field: string, call: () => Promise<unknown>]> = [
      ['request_id', () => client.createSandbox({ requestId: 'a b' })],
      ['template', () => client.createSandbox({ template: 'No' })],
      ['ttl', () => client.createSandbox({ ttl: { seconds: 86_401n } })],
      ['limits.memory_mib', () => client.createSandbox({ limits: { memoryMib: 1 } })],
      ['labels', () => client.createSandbox({ labels })],
      ['ttl', () => client.renewSandbox({ name, ttl: { seconds: 86_401n } })],
      ['text', () => client.searchSandboxFiles({ name })],
      ['language', () => execute({ language: 9 })],
      ['limits.wall_time', () => execute({ limits: { wallTime: { seconds: 3_601n } } })],
      ['limits.memory_mib', () => execute({ limits: { memoryMib: 256 } })],
      ['scratchpad.values[0].name', () => execute({ scratchpad: { values: [{ name: 'a b' }] } })],
      ['tools[0].name', () => execute({ tools: [{ name: '' }] })],
      ['tools', () => execute({ language: Language.SHELL, tools: [{ name: 'a' }] })],
    ];
    for (const [field, call] of wrong) expect(await refusal(call())).toMatchObject({ code: 'INVALID_ARGUMENT', violations: [{ field }] });
    expect(await run(name, '1')).toContain('=ok');
  });

  it('is made once per request id, and closed once', async () => {
    const name = await create(client, { requestId: 'a', labels: { team: 'x' } });
    expect((await client.createSandbox({ requestId: 'a', labels: { team: 'x' } })).name).toBe(name);
    expect((await refusal(client.createSandbox({ requestId: 'a' }))).code).toBe('ALREADY_EXISTS');
    expect(await client.closeSandbox({ name })).toMatchObject({ state: SandboxState.CLOSED });
    expect(await client.closeSandbox({ name })).toMatchObject({ state: SandboxState.CLOSED, labels: { team: 'x' } });
    expect(await refusal(Array.fromAsync(client.execute({ name, code: '1' })))).toMatchObject({
      code: 'FAILED_PRECONDITION',
      metadata: { state: 'closed' },
    });
  });

  it('refuses to follow an unknown execution and stays usable', async () => {
    const name = await create();
    const resumeToken = Buffer.from('forged/3').toString('base64url');
    expect(await refusal(Array.fromAsync(client.execute({ name, executionId: 'forged', resumeToken })))).toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('execution "forged" is not known in this sandbox') as string,
    });
    expect(await run(name, 'print("ran")', { executionId: 'forged' })).toBe('ran\n=ok');
  });

  it('takes limits for one execution', async () => {
    const name = await create();
    expect(await run(name, 'while True: pass', { limits: { wallTime: { seconds: 0n, nanos: 200_000_000 } } })).toContain('=wall');
  });

  it('expires by itself unless it is renewed', async () => {
    const one = await client.createSandbox({ ttl: { seconds: 1n } });
    const other = await create(client, { ttl: { seconds: 1n } });
    await client.renewSandbox({ name: other, ttl: { seconds: 60n } });
    await until(async () => (await installation.session('acme', one.name)).state === 'expired');
    expect(await refusal(Array.fromAsync(client.execute({ name: one.name, code: '1' })))).toMatchObject({ metadata: { state: 'expired' } });
    expect(await run(other, 'print(1)')).toBe('1\n=ok');
  });
});

describe('files of a session over gRPC', () => {
  it('are listed in pages, described and deleted', async () => {
    const name = await create();
    for (const path of ['b', 'a/x', 'c']) await client.uploadFile(upload(name, path, Buffer.from(path)));
    const first = await client.listSandboxFiles({ name, pageSize: 2 });
    const second = await client.listSandboxFiles({ name, pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.files, ...second.files].map(({ path }) => path)).toEqual(['a/x', 'b', 'c']);
    expect(second.nextPageToken).toBe('');
    expect(await client.getSandboxFile({ name, path: 'a/x' })).toMatchObject({ sizeBytes: 3n, uploadedBytes: 0n });
    await client.deleteSandboxFile({ name, path: 'b' });
    for (const call of [client.getSandboxFile({ name, path: 'b' }), Array.fromAsync(client.downloadFile({ name, path: 'b' }))])
      expect((await refusal(call)).code).toBe('NOT_FOUND');
    expect((await refusal(client.getSandboxFile({ name, path: '../secret' }))).code).toBe('INVALID_ARGUMENT');
  });

  it('refuse an upload that is shorter or longer than announced', async () => {
    const name = await create();
    const bytes = Buffer.from('all of it');
    async function* sent(part: Uint8Array, from = 0) {
      const sizeBytes = BigInt(bytes.length);
      yield { part: { case: 'header' as const, value: { name, path: 'f', offset: BigInt(from), sizeBytes } } };
      yield { part: { case: 'chunk' as const, value: part } };
    }
    const cut = await refusal(client.uploadFile(sent(bytes.subarray(0, 3))));
    expect(cut).toMatchObject({ code: 'ABORTED', message: expect.stringContaining('3 of 9 bytes. Continue with offset 3') });
    expect(await client.getSandboxFile({ name, path: 'f' })).toMatchObject({ sizeBytes: 0n, uploadedBytes: 3n });
    expect((await refusal(client.uploadFile(sent(bytes, 3)))).code).toBe('INVALID_ARGUMENT');
    expect(await client.uploadFile(sent(bytes.subarray(3), 3))).toMatchObject({ sizeBytes: 9n });
    expect(await Array.fromAsync(client.downloadFile({ name, path: 'f', offset: 4n }))).toMatchObject([
      { chunk: bytes.subarray(4), sizeBytes: 9n },
    ]);
  });
});

describe('files of a session that is closed', () => {
  it('end a running upload and a running download with the reason', async () => {
    const { name } = await client.createSandbox({});
    await client.uploadFile(upload(name, 'f', new Uint8Array(24 * MIB)));
    const download = client.downloadFile({ name, path: 'f' })[Symbol.asyncIterator]();
    await download.next();
    async function* half() {
      yield* upload(name, 'g', new Uint8Array(MIB));
      await until(async () => (await client.getSandboxFile({ name, path: 'g' }).catch(() => null))?.uploadedBytes === BigInt(MIB));
      await client.closeSandbox({ name });
      yield { part: { case: 'chunk' as const, value: new Uint8Array(1) } };
    }
    const closed = { code: 'FAILED_PRECONDITION', metadata: { state: 'closed' } };
    expect(await refusal(client.uploadFile(half()))).toMatchObject(closed);
    const rest = async () => {
      while (!(await download.next()).done);
    };
    expect(await refusal(rest())).toMatchObject(closed);
  });
});

describe('who may call', () => {
  it('is authenticated by token and tenant', async () => {
    for (const apiKey of [undefined, 'wrong', `${TOKEN} `]) {
      const stranger = createServiceClient(Sandboxes, controller.address, { apiKey });
      onTestFinished(() => stranger.close());
      expect((await refusal(stranger.closeSandbox({}, { metadata: { 'etude-tenant': 'acme' } }))).code).toBe('UNAUTHENTICATED');
    }
    const nobody = createServiceClient(Sandboxes, controller.address, { apiKey: TOKEN });
    onTestFinished(() => nobody.close());
    expect((await refusal(nobody.closeSandbox({}))).code).toBe('TENANT_MISSING');
  });

  it('never reaches another tenant', async () => {
    const name = await create();
    await client.uploadFile(upload(name, 'f', Buffer.from('mine')));
    const other = controller.client('other');
    const calls: Array<Promise<unknown>> = [
      other.renewSandbox({ name }),
      other.closeSandbox({ name }),
      Array.fromAsync(other.execute({ name, code: '1' })),
      other.cancelExecution({ name, executionId: 'x' }),
      other.uploadFile(upload(name, 'f', Buffer.from('yours'))),
      Array.fromAsync(other.downloadFile({ name, path: 'f' })),
      other.getSandboxFile({ name, path: 'f' }),
      other.listSandboxFiles({ name }),
      other.deleteSandboxFile({ name, path: 'f' }),
    ];
    expect((await Promise.all(calls.map(refusal))).map(({ code }) => code)).toEqual(calls.map(() => 'NOT_FOUND'));
    expect(await run(name, 'print(open("f").read())')).toBe('mine\n=ok');
  });
});

describe('a controller that shuts down', () => {
  it('marks its local sessions as lost', async () => {
    const going = await installation.start();
    const { name } = await going.client('gone').createSandbox({});
    expect(await going.process.stop()).toBe(0);
    expect(await installation.session('gone', name)).toMatchObject({ state: 'lost', stateReason: 'infra: its controller was stopped' });
  });
});
