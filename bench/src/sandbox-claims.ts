import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxLimits } from '@etude/contracts/sandbox';
import type { SandboxRun } from '@etude/contracts/sandbox';
import type { ClaimedSandbox, ExecutionSink, SandboxDriver, SandboxExecution, SandboxShape } from '@etude/sandbox/sandbox-driver';

/** A small sandbox, so that a hundred fit on one node. */
export const SHAPE: SandboxShape = { template: 'default', memoryMiB: 64, diskMiB: 32 };
export const never = (): AbortSignal => new AbortController().signal;
const program = (code: string): SandboxRun => ({ kind: 'program', code, stdin: '' });

export function execution(code: string, more: Partial<SandboxExecution> = {}): SandboxExecution {
  const limits = SandboxLimits.parse({ memoryMiB: SHAPE.memoryMiB, diskMiB: SHAPE.diskMiB, cpuMs: 60_000, wallMs: 60_000 });
  return { executionId: `bench-${randomUUID()}`, tenant: 'bench', files: [], stopOnFailure: false, limits, runs: [program(code)], ...more };
}

export class FirstByte implements ExecutionSink {
  readonly heard: Promise<void>;
  private tell: () => void = () => undefined;

  constructor() {
    this.heard = new Promise((resolve) => (this.tell = resolve));
  }
  output(): void {
    this.tell();
  }
  display(): void {
    this.tell();
  }
  result(): void {
    this.tell();
  }
}

/** ms from asking for a sandbox to the first byte that its code prints. Then releases the sandbox. */
export async function claimToFirstByte(driver: SandboxDriver): Promise<number> {
  const start = performance.now();
  const sandbox: ClaimedSandbox = await driver.claim(SHAPE, never());
  const sink = new FirstByte();
  const running = sandbox.execute(execution('print("first", flush=True)'), sink, never());
  await sink.heard;
  const elapsedMs = performance.now() - start;
  await running;
  void sandbox.release();
  return elapsedMs;
}

/** Claims at an even pace, without waiting for earlier claims. Returns the ms of each claim. */
export async function claimsAtPace(driver: SandboxDriver, count: number, perSecond: number): Promise<number[]> {
  const start = performance.now();
  const claims: Array<Promise<number>> = [];
  for (let i = 0; i < count; i++) {
    await sleep(Math.max(0, start + (i * 1_000) / perSecond - performance.now()));
    claims.push(claimToFirstByte(driver));
  }
  return Promise.all(claims);
}
