import { randomUUID } from 'node:crypto';
import type { Display, RunResult, SandboxLimits, SandboxRun } from '@etude/contracts/sandbox';
import { it, onTestFinished } from 'vitest';
import type { ClaimedSandbox, ExecutionSink, SandboxFiles } from '../src/sandbox-driver.js';
import { type Fixture, requestOf } from './sandbox-fixture.js';

/** Everything that an execution sent, in order. */
export class Heard implements ExecutionSink {
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  readonly displays: Display[] = [];
  /** Printed texts and texts of displays, in the order in which they arrived. */
  readonly told: string[] = [];
  readonly results: RunResult[] = [];

  output(stream: 'stdout' | 'stderr', text: string): void {
    this[stream].push(text);
    this.told.push(text);
  }
  display(data: Display): void {
    this.displays.push(data);
    this.told.push(JSON.stringify(data['text/plain']));
  }
  result(result: RunResult): void {
    this.results.push(result);
  }
  get text(): string {
    return this.stdout.join('') + this.results.map(({ stdout }) => stdout).join('');
  }
}

/** The outcome of a run of a session: everything that it printed, and its displays. */
type SessionOutcome = Awaited<ReturnType<typeof run>>;

export interface TestSession {
  readonly claimed: ClaimedSandbox;
  readonly files: SandboxFiles;
  /** Executes a cell. */
  readonly cell: (code: string, limits?: Partial<SandboxLimits>) => Promise<SessionOutcome>;
  readonly command: (text: string, limits?: Partial<SandboxLimits>) => Promise<SessionOutcome>;
}

const SHAPE = { template: 'default', memoryMiB: 256, diskMiB: 128 };

/** Claims a sandbox for one test, which keeps its state between runs. */
export async function openSession(sandboxes: Fixture): Promise<TestSession> {
  const claimed = await sandboxes.driver.claim(SHAPE, new AbortController().signal);
  onTestFinished(() => claimed.release());
  return {
    claimed,
    files: claimed.files,
    cell: (code, limits) => run(claimed, { kind: 'cell', code }, limits),
    command: (text, limits) => run(claimed, { kind: 'command', command: text, stdin: '' }, limits),
  };
}

/** `it` with a session for each test that asks for one. */
export const itInSession = (sandboxes: Fixture) => it.extend('session', () => openSession(sandboxes));

async function run(claimed: ClaimedSandbox, asked: SandboxRun, limits: Partial<SandboxLimits> = {}) {
  const heard = new Heard();
  const request = { ...requestOf([asked], { limits }), executionId: `session-${randomUUID()}`, keep: true };
  const end = await claimed.execute(request, heard, new AbortController().signal);
  const [result] = heard.results;
  if (!result) throw new Error(`the sandbox gave no result: ${JSON.stringify(end)}`);
  const { stdout, stderr, displays, told } = heard;
  return { stdout: stdout.join('') + result.stdout, stderr: stderr.join('') + result.stderr, displays, told, result };
}
