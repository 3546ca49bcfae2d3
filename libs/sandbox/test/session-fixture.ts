import { randomUUID } from 'node:crypto';
import type { Display, RunResult, SandboxLimits, SandboxRun } from '@etude/contracts/sandbox';
import { onTestFinished } from 'vitest';
import type { ClaimedSandbox, SandboxFiles } from '../src/sandbox-driver.js';
import { type Fixture, requestOf } from './sandbox-fixture.js';

/** What a run of a session came to: all it printed, and its rich outputs. */
export interface SessionOutcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly displays: readonly Display[];
  /** What was printed and the text of what was displayed, in the order in which it came while the code ran. */
  readonly told: readonly string[];
  readonly result: RunResult;
}

export interface TestSession {
  readonly files: SandboxFiles;
  /** Executes a cell. */
  readonly cell: (code: string, limits?: Partial<SandboxLimits>) => Promise<SessionOutcome>;
  readonly command: (text: string, limits?: Partial<SandboxLimits>) => Promise<SessionOutcome>;
}

const SHAPE = { template: 'default', memoryMiB: 256, diskMiB: 128 };

/** A sandbox claimed for one test, and kept from run to run. */
export async function openSession(sandboxes: Fixture): Promise<TestSession> {
  const claimed = await sandboxes.driver.claim(SHAPE, new AbortController().signal);
  onTestFinished(() => claimed.release());
  return {
    files: claimed.files,
    cell: (code, limits) => run(claimed, { kind: 'cell', code }, limits),
    command: (text, limits) => run(claimed, { kind: 'command', command: text, stdin: '' }, limits),
  };
}

async function run(claimed: ClaimedSandbox, asked: SandboxRun, limits: Partial<SandboxLimits> = {}): Promise<SessionOutcome> {
  const printed = { stdout: '', stderr: '' };
  const displays: Display[] = [];
  const told: string[] = [];
  const results: RunResult[] = [];
  const end = await claimed.execute(
    { ...requestOf([asked], { limits }), executionId: `session-${randomUUID()}`, keep: true },
    {
      output: (_run, stream, text) => {
        printed[stream] += text;
        told.push(text);
      },
      display: (_run, data) => {
        displays.push(data);
        told.push(JSON.stringify(data['text/plain']));
      },
      result: (_run, result) => void results.push(result),
    },
    new AbortController().signal,
  );
  const [result] = results;
  if (!result) throw new Error(`the sandbox gave no result: ${JSON.stringify(end)}`);
  return { stdout: printed.stdout + result.stdout, stderr: printed.stderr + result.stderr, displays, told, result };
}
