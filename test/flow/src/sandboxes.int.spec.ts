import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type ExecuteEvent, Language, type RichOutput, Sandboxes, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const TOKEN = 'a-token-of-the-inside';
const CHUNK = 512 * 1024;
const MIB = 1_048_576;

let stack: TestStack;
let sandboxes: ServiceClient<typeof Sandboxes>;

beforeAll(async () => {
  const script = fileURLToPath(new URL('./learning.yaml', import.meta.url));
  stack = await startStack({ script, env: { ETUDE_SANDBOX_INTERNAL_TOKEN: TOKEN } });
  sandboxes = createServiceClient(Sandboxes, stack.address);
});
afterAll(async () => {
  sandboxes.close();
  await stack.stop();
});

interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly displays: readonly RichOutput[];
  readonly exit: string;
  readonly events: readonly ExecuteEvent[];
}

async function run(
  name: string,
  code: string,
  more: { language?: Language; executionId?: string; resumeToken?: string } = {},
): Promise<Ran> {
  const events: ExecuteEvent[] = [];
  for await (const event of sandboxes.execute({ name, code, ...more })) events.push(event);
  const text = (stream: 'stdout' | 'stderr') => events.map(({ event }) => (event.case === stream ? event.value : '')).join('');
  const displays = events.flatMap(({ event }) => (event.case === 'display' ? [event.value] : []));
  const last = events.at(-1)?.event;
  return { stdout: text('stdout'), stderr: text('stderr'), displays, exit: last?.case === 'result' ? last.value.exit : '', events };
}

async function* upload(name: string, path: string, content: Uint8Array, offset = 0) {
  yield { part: { case: 'header' as const, value: { name, path, offset: BigInt(offset), sizeBytes: BigInt(content.length) } } };
  for (let at = offset; at < content.byteLength; at += CHUNK)
    yield { part: { case: 'chunk' as const, value: content.subarray(at, at + CHUNK) } };
}

async function download(name: string, path: string): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const { chunk } of sandboxes.downloadFile({ name, path })) parts.push(chunk);
  return Buffer.concat(parts);
}

/** Most that a process ever held, in bytes. */
const peakBytes = (pid: number) => Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024;

describe('a sandbox from its creation to its end', () => {
  it('keeps names and files from cell to cell, until it is closed', async () => {
    const { name } = await sandboxes.createSandbox({ requestId: 'whole-life', ttl: { seconds: 120n } });
    expect((await sandboxes.createSandbox({ requestId: 'whole-life', ttl: { seconds: 120n } })).name).toBe(name);
    await sandboxes.uploadFile(upload(name, 'data/numbers.csv', Buffer.from('1\n2\n3\n')));
    expect(await run(name, 'total = sum(int(line) for line in open("data/numbers.csv"))\nprint("read")')).toMatchObject({
      stdout: 'read\n',
      exit: 'ok',
    });
    const seen = await run(name, 'open("total.txt", "w").write(str(total))\ntotal');
    expect(seen.displays.map(({ text }) => text['text/plain'])).toEqual(['6']);
    expect(await run(name, 'cat total.txt', { language: Language.SHELL })).toMatchObject({ stdout: '6', exit: 'ok' });
    expect((await download(name, 'total.txt')).toString()).toBe('6');
    const { files } = await sandboxes.listSandboxFiles({ name });
    expect(files.map(({ path }) => path).toSorted()).toEqual(['data/numbers.csv', 'total.txt']);
    await sandboxes.deleteSandboxFile({ name, path: 'total.txt' });
    await expect(sandboxes.getSandboxFile({ name, path: 'total.txt' })).rejects.toThrow('NOT_FOUND');
    expect(await sandboxes.closeSandbox({ name })).toMatchObject({ state: SandboxState.CLOSED });
    await expect(run(name, '1')).rejects.toThrow('FAILED_PRECONDITION');
  });

  it('runs nothing twice, and tells it again from any event', async () => {
    const { name } = await sandboxes.createSandbox({});
    const code = 'n = globals().get("n", 0) + 1\nfor i in range(3): print(i, flush=True)\nprint("runs", n)';
    const first = await run(name, code, { executionId: 'once' });
    expect(first.stdout).toBe('0\n1\n2\nruns 1\n');
    const again = await run(name, code, { executionId: 'once' });
    expect(again.stdout).toBe(first.stdout);
    const rest = await run(name, '', { executionId: 'once', resumeToken: first.events[0]?.resumeToken ?? '' });
    const told = first.events[0]?.event;
    expect((told?.case === 'stdout' ? told.value : '') + rest.stdout).toBe(first.stdout);
    await sandboxes.closeSandbox({ name });
  });

  it('stops an execution that is cancelled and keeps its names', async () => {
    const { name } = await sandboxes.createSandbox({});
    await run(name, 'kept = 5');
    const running = run(name, 'print("on", flush=True)\nwhile True: pass', { executionId: 'endless' });
    await until(async () => (await sandboxes.cancelExecution({ name, executionId: 'endless' })).stopped);
    expect(await running).toMatchObject({ exit: 'cancelled' });
    expect((await run(name, 'kept')).displays[0]?.text['text/plain']).toBe('5');
    await sandboxes.closeSandbox({ name });
  });

  it('is gone once its time is over', async () => {
    const { name } = await sandboxes.createSandbox({ ttl: { seconds: 1n } });
    await until(async () => (await sandboxes.getSandbox({ name })).state === SandboxState.EXPIRED);
    await expect(run(name, '1')).rejects.toThrow('expired');
  });
});

it('moves 100 MiB through the gateway in bounded memory', async () => {
  const size = 100 * MIB;
  const { name } = await sandboxes.createSandbox({ limits: { diskMib: 256, fileSizeMib: 128 } });
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; at += 4_096) content.writeUInt32LE(at, at);
  const before = peakBytes(stack.gateway.pid);
  expect(await sandboxes.uploadFile(upload(name, 'big', content))).toMatchObject({ sizeBytes: BigInt(size) });
  expect((await download(name, 'big')).equals(content)).toBe(true);
  // Twice: a second file of the same size takes nothing more where memory does not grow with what passes.
  const after = peakBytes(stack.gateway.pid);
  await sandboxes.uploadFile(upload(name, 'big', content));
  expect(after - before).toBeLessThan(size);
  expect(peakBytes(stack.gateway.pid) - after).toBeLessThan(32 * MIB);
  await sandboxes.closeSandbox({ name });
}, 180_000);

it('goes on with an upload where it was cut', async () => {
  const { name } = await sandboxes.createSandbox({});
  const content = Buffer.alloc(4 * CHUNK, 'resumed ');
  const cut = new AbortController();
  const cutting = async function* () {
    let parts = 0;
    for await (const part of upload(name, 'cut', content)) {
      yield part;
      if ((parts += 1) === 3) {
        await until(
          async () => (await sandboxes.getSandboxFile({ name, path: 'cut' }).catch(() => null))?.uploadedBytes === BigInt(2 * CHUNK),
        );
        cut.abort();
      }
    }
  };
  await expect(sandboxes.uploadFile(cutting(), { signal: cut.signal })).rejects.toThrow('CANCELLED');
  const { uploadedBytes } = await sandboxes.getSandboxFile({ name, path: 'cut' });
  expect(uploadedBytes).toBe(BigInt(2 * CHUNK));
  await sandboxes.uploadFile(upload(name, 'cut', content, Number(uploadedBytes)));
  expect((await download(name, 'cut')).equals(content)).toBe(true);
  await sandboxes.closeSandbox({ name });
});
