import { EMPTY_SCRATCHPAD } from '@etude/contracts/scratchpad';
import { SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX, SandboxLimits } from '@etude/contracts/sandbox';
import { SandboxLost } from '@etude/domain/ports/sandboxes';
import { afterEach, expect, it, vi } from 'vitest';
import { RouterWorkSandboxes } from './router-work-sandboxes.js';
import { type RouterParts, SandboxRouter } from './sandbox-router.js';

const never = new AbortController().signal;
const REQUEST = { tenant: 'acme', requestId: 'r-1', template: undefined, limits: SandboxLimits.parse({}) };
const CELL = { executionId: 'c-1', code: '1', tools: [], scratchpad: EMPTY_SCRATCHPAD };
const refuse = () => Promise.reject(new Error('this cell calls no tools'));

/** Work sandboxes over one controller that answers by `calls`. `asked` has the methods that were called. */
function rig(calls: Record<string, (request: never) => unknown>, state = SandboxState.OPEN) {
  const asked: string[] = [];
  const all: typeof calls = { createSandbox: async () => ({ name: 'sandboxes/s1', state }), renewSandbox: async () => ({}), ...calls };
  const client = Object.fromEntries(
    Object.entries(all).map(([method, answer]) => [method, (request: never) => (asked.push(method), answer(request))]),
  );
  const parts = {
    sessions: { get: async () => ({ controllerId: 'one', session: { state: 'open' } }) },
    directory: { live: async () => [{ controllerId: 'one', address: 'here', sessions: 0, sessionsMax: 1 }] },
    channels: { to: () => client },
  } as unknown as RouterParts;
  return { asked, work: new RouterWorkSandboxes(new SandboxRouter(parts)) };
}

afterEach(() => void vi.useRealTimers());

it('renews a sandbox at its first use, and when less than half of its time is left', async () => {
  vi.useFakeTimers();
  const { asked, work } = rig({ listSandboxFiles: async () => ({ files: [] }) });
  const sandbox = await work.open(REQUEST, never);
  for (const minutes of [0, 4, 2]) {
    vi.advanceTimersByTime(minutes * 60_000);
    await sandbox.list(never);
  }
  expect(asked.filter((method) => method === 'renewSandbox')).toHaveLength(2);
});

it('tells the loss of a sandbox from an exception with the same name', async () => {
  const ends = [
    { exit: 'node_lost', error: { type: 'SandboxLost', message: 'the node is gone', line: 0 } },
    { exit: 'nonzero', error: { type: 'SandboxLost', message: 'raised by the code', line: 1 } },
  ];
  async function* execute() {
    yield { resumeToken: '', event: { case: 'result', value: ends.shift() } };
  }
  const sandbox = await rig({ execute }).work.open(REQUEST, never);
  await expect(sandbox.run(CELL, refuse, never)).rejects.toEqual(new SandboxLost('the node is gone'));
  expect(await sandbox.run(CELL, refuse, never)).toMatchObject({ exit: 'nonzero' });
});

it('uploads in chunks, from the start where an upload was cut', async () => {
  const sizes: number[] = [];
  const uploadFile = async (parts: AsyncIterable<{ part: { case: string; value: Uint8Array } }>) => {
    for await (const { part } of parts) if (part.case === 'chunk') sizes.push(part.value.byteLength);
    return {};
  };
  const { asked, work } = rig({ getSandboxFile: async () => ({ uploadedBytes: 7n }), deleteSandboxFile: async () => ({}), uploadFile });
  await (await work.open(REQUEST, never)).write('a', new Uint8Array(FILE_CHUNK_BYTES_MAX + 1), never);
  expect(sizes).toEqual([FILE_CHUNK_BYTES_MAX, 1]);
  expect(asked.slice(-2)).toEqual(['deleteSandboxFile', 'uploadFile']);
});

it('opens no sandbox that has ended, and none without the token', async () => {
  await expect(rig({}, SandboxState.EXPIRED).work.open(REQUEST, never)).rejects.toBeInstanceOf(SandboxLost);
  const off = new SandboxRouter({ sessions: { get: async () => null }, directory: { live: async () => [] }, channels: null });
  await expect(new RouterWorkSandboxes(off).open(REQUEST, never)).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
    message: expect.stringContaining('ETUDE_SANDBOX_INTERNAL_TOKEN') as string,
  });
});
