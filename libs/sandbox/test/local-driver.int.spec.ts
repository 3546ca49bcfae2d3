import { readdir, readFile, readlink } from 'node:fs/promises';
import { sandboxesConformance } from '@etude/domain/testing/sandboxes-conformance';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LocalOptions } from '../src/local-driver.js';
import { program, requestOf, startLocal } from './sandbox-fixture.js';

const never = () => new AbortController().signal;
const start = async (options: LocalOptions) => {
  const { sandboxes, driver, close } = await startLocal(options);
  onTestFinished(close);
  return { driver, execute: sandboxes.execute.bind(sandboxes), close };
};
/** Number of sandboxes that the nests of this process have opened. */
const sandboxCount = async () => (await namespaces()).length;

describe('local sandboxes with a bubblewrap for each', () => {
  sandboxesConformance(() => startLocal({ warm: 1, isolation: 'single' }));
});

describe('local sandboxes', () => {
  it('run more executions than one nest has slots', async () => {
    const sandboxes = await start({ warm: 2, isolation: 'nest' });
    const numbers = Array.from({ length: 4 }, (_, i) => Array.from({ length: 52 }, (__, n) => `${n} of ${i}\n`));
    const inTurn = async (lines: string[]) => {
      const told: Array<string | undefined> = [];
      for (const line of lines) {
        const { runs } = await sandboxes.execute(requestOf([program(`print(${JSON.stringify(line.trim())})`)]), never());
        told.push(runs[0]?.stdout);
      }
      return told;
    };
    expect(await Promise.all(numbers.map(inTurn))).toEqual(numbers);
  });

  it('know nothing of the execution that warms a supervisor up', async () => {
    const sandboxes = await start({ warm: 1 });
    const request = { ...requestOf([program('import os; print(sorted(os.listdir(".")), len(os.listdir("/proc/self/fd")))')]) };
    const [rehearsed, other] = [
      await sandboxes.execute({ ...request, executionId: 'rehearsal' }, never()),
      await sandboxes.execute(request, never()),
    ];
    expect(rehearsed.runs).toEqual([expect.objectContaining({ exit: 'ok', stdout: other.runs[0]?.stdout })]);
  });

  it('keep as many sandboxes ready as configured', async () => {
    const sandboxes = await start({ warm: 3 });
    expect(sandboxes.driver.counts().free).toBe(3);
    await sandboxes.execute(requestOf([program('print(1)')]), never());
    await expect.poll(() => sandboxes.driver.counts().free).toBe(3);
    await expect.poll(sandboxCount).toBe(3);
  });

  it('stop the code at an abort before they answer', async () => {
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

  it('give a run its own disk size', async () => {
    const sandboxes = await start({ warm: 1 });
    const size = program('import os\ns = os.statvfs("/tmp")\nprint(s.f_blocks * s.f_frsize >> 20)');
    expect((await sandboxes.execute(requestOf([size], { limits: { diskMiB: 7 } }), never())).runs[0]).toMatchObject({ stdout: '7\n' });
  });

  it('report a lost sandbox, and go on with the next run', async () => {
    const sandboxes = await start({ warm: 1 });
    // The test kills the sandbox from outside, as the machine's owner could.
    const request = requestOf([program('import os, time\nfor _ in range(4): os.fork()\ntime.sleep(60)'), program('print(2)')]);
    const idle = await processesIn(await namespaces());
    const running = sandboxes.execute(request, never());
    // More processes than another spare sandbox would add.
    await expect.poll(async () => processesIn(await namespaces())).toBeGreaterThanOrEqual(2 * idle + 8);
    for (const pid of await listChildren(String(process.pid))) process.kill(Number(pid), 'SIGKILL');
    expect((await running).runs).toMatchObject([{ exit: 'kernel_lost' }, { exit: 'ok', stdout: '2\n' }]);
  });

  it('leave no process behind when they are closed', async () => {
    const sandboxes = await start({ warm: 2 });
    const running = sandboxes.execute(requestOf([program('while True: pass')]), never()).catch((error: Error) => error.name);
    await sandboxes.close();
    expect(await running).toBe('AbortError');
    await expect.poll(() => listChildren(String(process.pid))).toEqual([]);
    await expect(sandboxes.execute(requestOf([program('1')]), never())).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
  });

  it.each([
    ['bubblewrap is missing', { bwrapPath: '/nonexistent/bwrap' }, 'apt-get install -y bubblewrap python3'],
    ['Python is missing', { pythonPath: '/nonexistent/python3' }, 'apt-get install -y bubblewrap python3'],
  ])('are refused with advice if %s', async (_what, options, advice) => {
    await expect(start(options)).rejects.toMatchObject({ code: 'SANDBOX_CONTROL_MISSING', message: expect.stringContaining(advice) });
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
