import { readdir, readFile } from 'node:fs/promises';
import { SandboxLimits, type ExecutionRequest, type RunResult, type SandboxRun } from '@etude/contracts/sandbox';
import { afterAll, beforeAll } from 'vitest';
import type { BubblewrapDriver } from '../src/bubblewrap-driver.js';
import { DrivenSandboxes } from '../src/driven-sandboxes.js';
import { type LocalOptions, startLocalDriver } from '../src/local-driver.js';
import type { SandboxDriver } from '../src/sandbox-driver.js';

let executions = 0;

export function requestOf(
  runs: readonly SandboxRun[],
  more: Partial<Omit<ExecutionRequest, 'limits'>> & { limits?: Partial<SandboxLimits> } = {},
): ExecutionRequest {
  return {
    executionId: `execution-${(executions += 1)}`,
    tenant: 'acme',
    files: [],
    stopOnFailure: false,
    runs: [...runs],
    ...more,
    limits: SandboxLimits.parse(more.limits ?? {}),
  };
}

export const program = (code: string, stdin = ''): SandboxRun => ({ kind: 'program', code, stdin });
export const call = (code: string, args: unknown[] = [], kwargs: Record<string, unknown> = {}): SandboxRun => ({
  kind: 'call',
  code,
  entryPoint: 'f',
  args: args as never,
  kwargs: kwargs as never,
});
export const command = (text: string, stdin = ''): SandboxRun => ({ kind: 'command', command: text, stdin });
export const checked = (code: string, tests: string, setup = '', entryPoint = 'f'): SandboxRun => ({
  kind: 'checked',
  setup,
  code,
  entryPoint,
  tests,
});

/** The driver that the conformance specs test. */
export const UNDER_TEST = process.env['ETUDE_TEST_SANDBOX_DRIVER'] === 'kubernetes' ? 'kubernetes' : 'local';

export interface StartedSandboxes {
  readonly sandboxes: DrivenSandboxes;
  readonly driver: SandboxDriver;
  readonly close: () => Promise<void>;
}

/** Executions over a driver; both are closed together. */
export function driven<D extends SandboxDriver>(driver: D): StartedSandboxes & { readonly driver: D } {
  const sandboxes = new DrivenSandboxes(driver);
  const close = async () => {
    sandboxes.close();
    await driver.close();
  };
  return { sandboxes, driver, close };
}

export const startLocal = async (options: LocalOptions = { warm: 1 }): Promise<StartedSandboxes & { readonly driver: BubblewrapDriver }> =>
  driven(await startLocalDriver(options));

/** Starts the driver under test. The options are for the local driver only. */
export async function startUnderTest(options?: LocalOptions): Promise<StartedSandboxes> {
  return UNDER_TEST === 'kubernetes' ? (await import('./kubernetes/kubernetes-fixture.js')).startKubernetes() : startLocal(options);
}

export interface Fixture extends Omit<StartedSandboxes, 'close'> {
  /** Results of these runs in one fresh sandbox. */
  run(runs: readonly SandboxRun[], more?: Parameters<typeof requestOf>[1]): Promise<RunResult[]>;
  /** The result of one run. */
  one(run: SandboxRun, limits?: Partial<SandboxLimits>): Promise<RunResult>;
}

/** Sandboxes for all tests of a file. */
export function useSandboxes(options?: LocalOptions): Fixture {
  let started!: StartedSandboxes;
  beforeAll(async () => {
    started = await startUnderTest(options);
  }, 120_000);
  afterAll(() => started?.close());
  const run: Fixture['run'] = async (runs, more) =>
    (await started.sandboxes.execute(requestOf(runs, more), new AbortController().signal)).runs;
  return {
    get sandboxes() {
      return started.sandboxes;
    },
    get driver() {
      return started.driver;
    },
    run,
    async one(single, limits) {
      const [result] = await run([single], limits ? { limits } : {});
      if (!result) throw new Error('the sandbox gave no result');
      return result;
    },
  };
}

/** Processes of this machine whose command line has the text. */
export async function processesWith(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const lines = await Promise.all(pids.map(async (pid) => ({ pid, line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') })));
  return lines.filter(({ line }) => line.includes(text)).map(({ pid }) => pid);
}
