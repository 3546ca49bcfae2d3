import { readFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Isolation } from '../src/local-driver.js';
import type { LocalOptions } from '../src/local-driver.js';
import { processesWith, program, requestOf, startLocal } from './sandbox-fixture.js';

const never = () => new AbortController().signal;
const SHAPE = { template: 'default', memoryMiB: 512, diskMiB: 128 };

/** Ranges that no other test and no controller uses. */
let ranges = 0;
const range = (count: number) => {
  const first = 2_100_000_000 + (process.pid % 10_000) * 100 + 10 * (ranges += 1);
  return { firstUid: first, firstGid: first, count };
};

async function start(options: LocalOptions) {
  const started = await startLocal({ warm: 0, ...options });
  onTestFinished(started.close);
  return started;
}

let marks = 0;

/** Starts code that waits until the test ends, and returns its host user. */
async function userOfOne({ sandboxes }: Awaited<ReturnType<typeof start>>): Promise<number> {
  const marker = `etude-${process.pid}-user-${(marks += 1)}`;
  const stop = new AbortController();
  const code = `import os\nos.execv("/usr/bin/python3", ["python3", "-c", "import time; time.sleep(600)", "${marker}"])`;
  const running = sandboxes.execute(requestOf([program(code)], { limits: { wallMs: 60_000 } }), stop.signal).catch(() => undefined);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  await expect.poll(() => processesWith(marker)).toHaveLength(1);
  const status = await readFile(`/proc/${(await processesWith(marker))[0]}/status`, 'utf8');
  return Number(/^Uid:\t(\d+)/m.exec(status)?.[1]);
}

describe.each<Isolation>(['nest', 'single'])('users of this machine, with isolation %s', (isolation) => {
  it('are one for each live sandbox of all controllers', async ({ skip }) => {
    const [one, other] = [await start({ isolation }), await start({ isolation })];
    const note = one.driver.check();
    skip(note !== undefined, note);
    const users = [await userOfOne(one), await userOfOne(one), await userOfOne(other), await userOfOne(other)];
    expect(new Set([...users, process.getuid?.(), 65_534]).size).toBe(6);
  });

  it('are free again when a sandbox has ended', async ({ skip }) => {
    skip(process.getuid?.() !== 0, 'only root may choose the range');
    const { driver } = await start({ isolation, userRange: range(2) });
    const [first] = [await driver.claim(SHAPE, never()), await driver.claim(SHAPE, never())];
    await expect(driver.claim(SHAPE, never())).rejects.toMatchObject({ code: 'SANDBOX_CAPACITY' });
    await first.release();
    await expect(driver.claim(SHAPE, never())).resolves.toBeDefined();
  });

  it('are those of one controller until it ends', async ({ skip }) => {
    skip(process.getuid?.() !== 0, 'only root may choose the range');
    const userRange = range(3);
    const first = await start({ isolation, userRange });
    const second = await start({ isolation, userRange });
    expect(first.driver.check()).toBeUndefined();
    expect(second.driver.check()).toMatch(/other processes have all 3 users/);
    await first.close();
    expect((await start({ isolation, userRange })).driver.check()).toBeUndefined();
  });

  it('that can not be had leave sandboxes that work, and a reason', async () => {
    const { driver, sandboxes } = await start({ isolation, userRange: { firstUid: 2 ** 32 - 10, firstGid: 2 ** 32 - 10, count: 100 } });
    expect(driver.check()).toMatch(/all sandboxes run as one user of this machine, .*: .+/);
    const { runs } = await sandboxes.execute(requestOf([program('print(1)')]), never());
    expect(runs).toMatchObject([{ exit: 'ok', stdout: '1\n' }]);
  });
});
