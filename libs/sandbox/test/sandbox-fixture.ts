import { SandboxLimits, type ExecutionRequest, type RunResult, type SandboxRun } from '@etude/contracts/sandbox';
import { afterAll, beforeAll } from 'vitest';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { LocalSandboxes, type LocalSandboxesOptions } from '../src/local-sandboxes.js';
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

/** Where the conformance specs run: local processes unless the run says otherwise. */
export const UNDER_TEST = process.env['ETUDE_TEST_SANDBOX_DRIVER'] === 'kubernetes' ? 'kubernetes' : 'local';

export interface StartedSandboxes {
  readonly sandboxes: Sandboxes;
  readonly driver: SandboxDriver;
  close(): Promise<void>;
}

/** Sandboxes of the driver under test; the options are the local one's. */
export async function startUnderTest(options: LocalSandboxesOptions = { warm: 1, concurrencyMax: 2 }): Promise<StartedSandboxes> {
  if (UNDER_TEST === 'kubernetes') return (await import('./kubernetes/kubernetes-fixture.js')).startKubernetes();
  const sandboxes = await LocalSandboxes.start(options);
  return { sandboxes, driver: sandboxes.driver, close: () => sandboxes.close() };
}

export interface Fixture extends StartedSandboxes {
  /** Results of these runs in one fresh sandbox. */
  run(runs: readonly SandboxRun[], more?: Parameters<typeof requestOf>[1]): Promise<RunResult[]>;
  /** The result of one run. */
  one(run: SandboxRun, limits?: Partial<SandboxLimits>): Promise<RunResult>;
}

/** Sandboxes for all tests of a file. */
export function useSandboxes(options?: LocalSandboxesOptions): Fixture {
  let started: StartedSandboxes | null = null;
  beforeAll(async () => {
    started = await startUnderTest(options);
  }, 120_000);
  afterAll(() => started?.close());
  const use = () => {
    if (!started) throw new Error('the sandboxes are not started yet');
    return started;
  };
  const run: Fixture['run'] = async (runs, more) =>
    (await use().sandboxes.execute(requestOf(runs, more), new AbortController().signal)).runs;
  return {
    get sandboxes() {
      return use().sandboxes;
    },
    get driver() {
      return use().driver;
    },
    close: () => use().close(),
    run,
    async one(single, limits) {
      const [result] = await run([single], limits ? { limits } : {});
      if (!result) throw new Error('the sandbox gave no result');
      return result;
    },
  };
}
