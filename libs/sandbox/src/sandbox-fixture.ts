import { SandboxLimits, type ExecutionRequest, type RunResult, type SandboxRun } from '@etude/contracts/sandbox';
import { afterAll, beforeAll } from 'vitest';
import { LocalSandboxes, type LocalSandboxesOptions } from './local-sandboxes.js';

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

export interface Fixture {
  readonly sandboxes: LocalSandboxes;
  /** Results of these runs in one fresh sandbox. */
  run(runs: readonly SandboxRun[], more?: Parameters<typeof requestOf>[1]): Promise<RunResult[]>;
  /** The result of one run. */
  one(run: SandboxRun, limits?: Partial<SandboxLimits>): Promise<RunResult>;
}

/** Local sandboxes for all tests of a file. */
export function useSandboxes(options: LocalSandboxesOptions = { warm: 1, concurrencyMax: 2 }): Fixture {
  let started: LocalSandboxes | null = null;
  beforeAll(async () => {
    started = await LocalSandboxes.start(options);
  });
  afterAll(() => started?.close());
  const sandboxes = () => {
    if (!started) throw new Error('the sandboxes are not started yet');
    return started;
  };
  const run: Fixture['run'] = async (runs, more) => (await sandboxes().execute(requestOf(runs, more), new AbortController().signal)).runs;
  return {
    get sandboxes() {
      return sandboxes();
    },
    run,
    async one(single, limits) {
      const [result] = await run([single], limits ? { limits } : {});
      if (!result) throw new Error('the sandbox gave no result');
      return result;
    },
  };
}
