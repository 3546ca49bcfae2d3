import { readdir, readFile, readlink } from 'node:fs/promises';
import { sandboxesConformance } from '@etude/domain/testing/sandboxes-conformance';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LocalSandboxes, type LocalSandboxesOptions } from '../src/local-sandboxes.js';
import { program, requestOf } from './sandbox-fixture.js';

const never = () => new AbortController().signal;
const start = async (options: LocalSandboxesOptions) => {
  const sandboxes = await LocalSandboxes.start(options);
  onTestFinished(() => sandboxes.close());
  return sandboxes;
};
/** Sandboxes of this process: what the processes inside its bubblewraps have opened. */
const sandboxCount = async () => (await namespaces()).length;

describe('LocalSandboxes', () => {
  sandboxesConformance(async () => {
    const sandboxes = await LocalSandboxes.start({ warm: 1, concurrencyMax: 2 });
    return { sandboxes, close: () => sandboxes.close() };
  });

  describe('with a bubblewrap for each', () => {
    sandboxesConformance(async () => {
      const sandboxes = await LocalSandboxes.start({ warm: 1, concurrencyMax: 2, isolation: 'single' });
      return { sandboxes, close: () => sandboxes.close() };
    });
  });

  it('goes through more sandboxes than one nest opens', async () => {
    const sandboxes = await start({ warm: 2, concurrencyMax: 4, isolation: 'nest' });
    const results = await Promise.all(
      Array.from({ length: 210 }, (_, n) => sandboxes.execute(requestOf([program(`print(${n})`)]), never())),
    );
    expect(results.map(({ runs }) => runs[0]?.stdout)).toEqual(Array.from({ length: 210 }, (_, n) => `${n}\n`));
  });

  it('knows nothing of an execution that was only rehearsed', async () => {
    const sandboxes = await start({ warm: 1 });
    const request = { ...requestOf([program('import os; print(sorted(os.listdir(".")), len(os.listdir("/proc/self/fd")))')]) };
    const [rehearsed, other] = [
      await sandboxes.execute({ ...request, executionId: 'rehearsal' }, never()),
      await sandboxes.execute(request, never()),
    ];
    expect(rehearsed.runs).toEqual([expect.objectContaining({ exit: 'ok', stdout: other.runs[0]?.stdout })]);
  });

  it('keeps as many sandboxes ready as it was told', async () => {
    const sandboxes = await start({ warm: 3 });
    expect(sandboxes.warmCount).toBe(3);
    await sandboxes.execute(requestOf([program('print(1)')]), never());
    await expect.poll(() => sandboxes.warmCount).toBe(3);
    await expect.poll(sandboxCount).toBe(3);
  });

  it('runs a burst beyond its pool and no more at once than allowed', async () => {
    const sandboxes = await start({ warm: 1, concurrencyMax: 3 });
    const code = 'import time\nprint(time.monotonic())\ntime.sleep(0.1)\nprint(time.monotonic())';
    const results = await Promise.all(Array.from({ length: 10 }, () => sandboxes.execute(requestOf([program(code)]), never())));
    const times = results.map(({ runs }) => runs[0]?.stdout.trim().split('\n').map(Number) ?? []);
    expect(times.flat()).toHaveLength(20);
    // By the machine's clock, which all sandboxes share: how many others ran when each began.
    const together = times.map(([began = 0]) => times.filter(([from = 0, to = 0]) => from <= began && began <= to).length);
    expect(Math.max(...together)).toBeLessThanOrEqual(3);
  });

  it('refuses what waits beyond its queue', async () => {
    const sandboxes = await start({ warm: 0, concurrencyMax: 1, waitingMax: 1 });
    const stop = new AbortController();
    const slow = [1, 2].map(() =>
      sandboxes.execute(requestOf([program('import time\ntime.sleep(60)')]), stop.signal).catch((error: Error) => error.name),
    );
    await expect(sandboxes.execute(requestOf([program('1')]), never())).rejects.toMatchObject({ code: 'SANDBOX_CAPACITY' });
    stop.abort();
    expect(await Promise.all(slow)).toEqual(['AbortError', 'AbortError']);
  });

  it('stops the code at an abort, not at a limit, and then says so', async () => {
    const sandboxes = await start({ warm: 0 });
    const stop = new AbortController();
    const code = 'import os\nfor _ in range(3): os.fork()\nwhile True: pass';
    const limits = { wallMs: 3_600_000, cpuMs: 600_000 };
    const running = sandboxes.execute(requestOf([program(code)], { limits }), stop.signal);
    let inside: string[] = [];
    await expect.poll(async () => processesIn((inside = await namespaces()))).toBeGreaterThanOrEqual(8);
    stop.abort();
    await expect(running).rejects.toMatchObject({ name: 'AbortError' });
    expect(await processesIn(inside)).toBe(0);
  });

  it('goes on for one caller when another of the same execution gives up', async () => {
    const sandboxes = await start({ warm: 1 });
    const request = requestOf([program('import time\ntime.sleep(0.3)\nprint("done")')]);
    const stop = new AbortController();
    const [left, stays] = [sandboxes.execute(request, stop.signal), sandboxes.execute(request, never())];
    stop.abort();
    await expect(left).rejects.toMatchObject({ name: 'AbortError' });
    expect((await stays).runs[0]).toMatchObject({ stdout: 'done\n' });
  });

  it('runs an aborted execution anew when it is asked for again', async () => {
    const sandboxes = await start({ warm: 1 });
    const request = requestOf([program('print("anew")')]);
    const stop = new AbortController();
    const first = sandboxes.execute(request, stop.signal);
    stop.abort();
    await expect(first).rejects.toMatchObject({ name: 'AbortError' });
    expect((await sandboxes.execute(request, never())).runs[0]).toMatchObject({ stdout: 'anew\n' });
  });

  it('gives a run its own disk size', async () => {
    const sandboxes = await start({ warm: 1 });
    const size = program('import os\ns = os.statvfs("/tmp")\nprint(s.f_blocks * s.f_frsize >> 20)');
    expect((await sandboxes.execute(requestOf([size], { limits: { diskMiB: 7 } }), never())).runs[0]).toMatchObject({ stdout: '7\n' });
  });

  it('tells a lost sandbox from a result, and goes on behind it', async () => {
    const sandboxes = await start({ warm: 1 });
    // The code can't do this; the machine's owner can.
    const request = requestOf([program('import os, time\nfor _ in range(4): os.fork()\ntime.sleep(60)'), program('print(2)')]);
    const idle = await processesIn(await namespaces());
    const running = sandboxes.execute(request, never());
    // More than those of another spare one.
    await expect.poll(async () => processesIn(await namespaces())).toBeGreaterThanOrEqual(2 * idle + 8);
    for (const pid of await listChildren(String(process.pid))) process.kill(Number(pid), 'SIGKILL');
    expect((await running).runs).toMatchObject([{ exit: 'kernel_lost' }, { exit: 'ok', stdout: '2\n' }]);
  });

  it('leaves no process behind when it is closed', async () => {
    const sandboxes = await LocalSandboxes.start({ warm: 2 });
    const running = sandboxes.execute(requestOf([program('while True: pass')]), never()).catch((error: Error) => error.name);
    await sandboxes.close();
    expect(await running).toBe('AbortError');
    await expect.poll(() => listChildren(String(process.pid))).toEqual([]);
    await expect(sandboxes.execute(requestOf([program('1')]), never())).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });

  it('names the line that installs what is missing', async () => {
    await expect(LocalSandboxes.start({ bwrapPath: '/nonexistent/bwrap' })).rejects.toMatchObject({
      code: 'SANDBOX_CONTROL_MISSING',
      message: expect.stringContaining('apt-get install -y bubblewrap python3') as string,
    });
    await expect(LocalSandboxes.start({ pythonPath: '/nonexistent/python3' })).rejects.toMatchObject({
      code: 'SANDBOX_CONTROL_MISSING',
      message: expect.stringContaining('apt-get install') as string,
    });
  });

  it('refuses to do without a control it does not know', async () => {
    await expect(LocalSandboxes.start({ allowMissingControls: ['everything'] })).rejects.toMatchObject({
      code: 'SANDBOX_CONTROL_MISSING',
      message: expect.stringContaining('network, nested-namespaces') as string,
    });
  });
});

const listChildren = async (pid: string) =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')).split(' ').filter(Boolean);

/** Process namespaces of the sandboxes that the nests of this process opened. */
async function namespaces(): Promise<string[]> {
  const outer = await listChildren(String(process.pid));
  const nests = (await Promise.all(outer.map(listChildren))).flat();
  const inner = (await Promise.all(nests.map(listChildren))).flat();
  const links = await Promise.all(inner.map((pid) => readlink(`/proc/${pid}/ns/pid`).catch(() => '')));
  return links.filter((link) => link !== '');
}

async function processesIn(spaces: readonly string[]): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const links = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/ns/pid`).catch(() => '')));
  return links.filter((link) => spaces.includes(link)).length;
}
