import type { ExecutionRequest, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Sandboxes } from '../src/ports/sandboxes.js';

export interface SandboxesUnderTest {
  readonly sandboxes: Sandboxes;
  close?(): Promise<void>;
}

interface ConformanceRun {
  readonly run: SandboxRun;
  readonly gives: Partial<RunResult>;
}

const program = (code: string, stdin = ''): SandboxRun => ({ kind: 'program', code, stdin });
const call = (code: string, args: unknown[]): SandboxRun => ({ kind: 'call', code, entryPoint: 'f', args: args as never, kwargs: {} });
const checked = (code: string): SandboxRun => ({
  kind: 'checked',
  setup: '',
  code,
  entryPoint: 'f',
  tests: 'assert f(2) == 4, "two"\nassert f(3) == 9',
});

const ECHO: ConformanceRun = {
  run: program('print(input()[::-1])', 'étude\n'),
  gives: { exit: 'ok', exitCode: 0, stdout: 'eduté\n', stderr: '' },
};
const LEAVES: ConformanceRun = { run: program('import sys\nsys.exit(3)'), gives: { exit: 'nonzero', exitCode: 3 } };
const KILLED: ConformanceRun = { run: program('import os\nos.kill(os.getpid(), 9)'), gives: { exit: 'signal', signal: 9 } };
const RETURNS: ConformanceRun = {
  run: call('def f(x):\n    return {"twice": [x, x], "set": {x}}', [7]),
  gives: { exit: 'ok', value: { twice: [7, 7], set: { $set: [7] } } },
};
const RAISES: ConformanceRun = {
  run: call('def f(x):\n    return 1 / x', [0]),
  gives: { exit: 'nonzero', error: { type: 'ZeroDivisionError', message: 'division by zero', line: 2 } },
};
const RIGHT: ConformanceRun = { run: checked('def f(x):\n    return x * x'), gives: { exit: 'ok', passed: true } };
const WRONG: ConformanceRun = {
  run: checked('def f(x):\n    return x + x'),
  gives: { exit: 'nonzero', passed: false, error: { type: 'AssertionError', message: '', line: 2 } },
};
const SHELL: ConformanceRun = {
  run: { kind: 'command', command: 'read word; echo "$word in shell"; exit 4', stdin: 'here\n' },
  gives: { exit: 'nonzero', exitCode: 4, stdout: 'here in shell\n' },
};
const SLEEPS: ConformanceRun = { run: program('import time\ntime.sleep(600)'), gives: {} };

let requests = 0;
const request = (runs: readonly ConformanceRun[], more: Partial<ExecutionRequest> = {}): ExecutionRequest => ({
  executionId: `conformance-${process.pid}-${(requests += 1)}`,
  tenant: 'acme',
  files: [],
  limits: SandboxLimits.parse({}),
  stopOnFailure: false,
  runs: runs.map(({ run }) => run),
  ...more,
});
const never = () => new AbortController().signal;

async function started(make: () => Promise<SandboxesUnderTest>): Promise<Sandboxes> {
  const made = await make();
  onTestFinished(async () => made.close?.());
  return made.sandboxes;
}

/** The promise of Sandboxes that keep results. Those of a driver keep none, because the queue keeps the results. */
export function repeatsConformance(make: () => Promise<SandboxesUnderTest>): void {
  it('returns the first result for a repeated execution', async () => {
    const sandboxes = await started(make);
    const asked = request([ECHO]);
    const first = await sandboxes.execute(asked, never());
    expect(await sandboxes.execute(asked, never())).toEqual(first);
  });
}

/** The promises of every Sandboxes adapter, fake or real. */
export function sandboxesConformance(make: () => Promise<SandboxesUnderTest>): void {
  const start = () => started(make);

  describe('as Sandboxes', () => {
    it('returns one result per run, in order', async () => {
      const sandboxes = await start();
      const runs = [ECHO, LEAVES, KILLED, RETURNS, RAISES, RIGHT, WRONG, SHELL];
      const asked = request(runs);
      const result = await sandboxes.execute(asked, never());
      expect(result.executionId).toBe(asked.executionId);
      expect(result.runs).toHaveLength(runs.length);
      runs.forEach(({ gives }, at) => expect(result.runs[at]).toMatchObject(gives));
    });

    it('stops after the first failure if requested', async () => {
      const sandboxes = await start();
      const result = await sandboxes.execute(request([ECHO, LEAVES, ECHO], { stopOnFailure: true }), never());
      expect(result.runs.map(({ exit }) => exit)).toEqual(['ok', 'nonzero']);
    });

    it('keeps concurrent executions apart', async () => {
      const sandboxes = await start();
      const asked = [request([ECHO]), request([RETURNS]), request([RIGHT]), request([LEAVES])];
      const results = await Promise.all(asked.map((one) => sandboxes.execute(one, never())));
      expect(results.map(({ executionId }) => executionId)).toEqual(asked.map(({ executionId }) => executionId));
      expect(results.map(({ runs }) => runs[0]?.exit)).toEqual(['ok', 'ok', 'ok', 'nonzero']);
    });

    it('rejects with an AbortError when the caller aborts', async () => {
      const sandboxes = await start();
      const stop = new AbortController();
      const running = sandboxes.execute(request([SLEEPS]), stop.signal);
      setImmediate(() => stop.abort());
      await expect(running).rejects.toMatchObject({ name: 'AbortError' });
    });

    it('runs nothing if the caller aborted before', async () => {
      const sandboxes = await start();
      await expect(sandboxes.execute(request([ECHO]), AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
    });
  });
}
