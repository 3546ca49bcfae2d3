import { RunAssembly } from '@etude/sandbox/driven-sandboxes';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { startBareFork } from './bare-fork.js';
import { percentile, repeat, timed } from './figures.js';
import { execution, FirstByte, never, SHAPE } from './sandbox-claims.js';

const CODE = 'print(sum(range(1000)))';
const WARM_UP = 20;

/** p50 in ms of an execution in one claimed sandbox, and of a bare fork of an interpreter that was warmed alike. */
export async function executionOverhead(driver: SandboxDriver, n: number): Promise<{ sandbox: number; bare: number }> {
  const sandbox = await driver.claim(SHAPE, never());
  const bare = startBareFork();
  try {
    const inSandbox = () => sandbox.execute(execution(CODE, { keep: true }), new FirstByte(), never());
    await repeat(WARM_UP, inSandbox);
    await repeat(WARM_UP, () => bare.run(CODE));
    const sandboxMs: number[] = [];
    const bareMs: number[] = [];
    // In turns, so that other load on the machine affects both.
    for (let i = 0; i < n; i++) {
      sandboxMs.push(await timed(inSandbox));
      bareMs.push(await timed(() => bare.run(CODE)));
    }
    return { sandbox: percentile(sandboxMs, 50), bare: percentile(bareMs, 50) };
  } finally {
    await bare.close();
    await sandbox.release();
  }
}

const SPINNING_TREE = 'import os\nfor _ in range(3): os.fork()\nprint("on", flush=True)\nwhile True: pass';

/** ms from cancelling to the result, which the supervisor sends when no process of the run is left. */
export async function cancelMs(driver: SandboxDriver, n: number): Promise<number[]> {
  const sandbox = await driver.claim(SHAPE, never());
  try {
    const durations: number[] = [];
    while (durations.length < n) {
      const stop = new AbortController();
      const sink = new FirstByte();
      const running = sandbox.execute(execution(SPINNING_TREE, { keep: true }), sink, stop.signal).catch((error: Error) => error.name);
      await sink.heard;
      const cancelled = async () => {
        stop.abort();
        if ((await running) !== 'AbortError') throw new Error('the execution ended before it was cancelled');
      };
      durations.push(await timed(cancelled));
    }
    return durations;
  } finally {
    await sandbox.release();
  }
}

const ENDLESS = 'line = "x" * 1000\nwhile True: print(line)';

/** MiB by which this process grows at most while `count` sandboxes print until their limits end them. */
export async function floodGrowth(driver: SandboxDriver, count: number, note: (text: string) => void): Promise<number> {
  const claimed = await Promise.all(Array.from({ length: count }, () => driver.claim(SHAPE, never())));
  note(`${count} sandboxes are claimed`);
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
  try {
    await Promise.all(claimed.map((sandbox) => sandbox.execute(execution(ENDLESS), new RunAssembly(), never())));
  } finally {
    clearInterval(watch);
    await Promise.all(claimed.map((sandbox) => sandbox.release()));
  }
  return (most - before) / 2 ** 20;
}
