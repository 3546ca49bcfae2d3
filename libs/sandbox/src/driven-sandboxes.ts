import type { ExecutionRequest, ExecutionResult, RunResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { SandboxDriver } from './sandbox-driver.js';
import { Slots } from './slots.js';

export interface DrivenSandboxesLimits {
  readonly concurrencyMax: number;
  readonly waitingMax: number;
}

interface Running {
  readonly result: Promise<ExecutionResult>;
  readonly stop: AbortController;
  /** Callers that still want the result. */
  callers: number;
}

/** Results that are remembered, so that the same execution asked for again runs nothing. */
const REMEMBERED_MAX = 200;

/** Executions over any driver: once per id, so many at once, each in a sandbox of its own that is destroyed on every path. */
export class DrivenSandboxes implements Sandboxes {
  private readonly known = new Map<string, Running>();
  private readonly slots: Slots;

  constructor(
    private readonly driver: SandboxDriver,
    limits: DrivenSandboxesLimits,
  ) {
    this.slots = new Slots(limits.concurrencyMax, limits.waitingMax);
  }

  async execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    signal.throwIfAborted();
    const running = this.join(`${request.tenant} ${request.executionId}`, request);
    running.callers += 1;
    const leave = () => {
      running.callers -= 1;
      if (running.callers === 0) running.stop.abort(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await this.unlessAborted(running, signal);
    } finally {
      signal.removeEventListener('abort', leave);
      if (!signal.aborted) running.callers -= 1;
    }
  }

  /** Stops everything that runs. */
  close(): void {
    for (const running of this.known.values()) running.stop.abort();
  }

  /** A caller that left is told when the code has stopped, or at once while others still want it. */
  private unlessAborted(running: Running, signal: AbortSignal): Promise<ExecutionResult> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => running.callers > 0 && reject(signal.reason as Error), { once: true });
      running.result.then(resolve, reject);
    });
  }

  private join(key: string, request: ExecutionRequest): Running {
    const known = this.known.get(key);
    if (known && !known.stop.signal.aborted) return known;
    const stop = new AbortController();
    const running: Running = { result: this.run(request, stop.signal), stop, callers: 0 };
    this.known.set(key, running);
    running.result.then(
      () => this.forgetOldest(),
      () => this.known.get(key) === running && this.known.delete(key),
    );
    return running;
  }

  private forgetOldest(): void {
    for (const [key, running] of this.known) {
      if (this.known.size <= REMEMBERED_MAX) return;
      if (running.callers === 0) this.known.delete(key);
    }
  }

  private async run(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    const leaveSlot = await this.slots.enter(signal);
    try {
      const runs: RunResult[] = [];
      while (runs.length < request.runs.length) {
        const done = await this.runInOne({ ...request, runs: request.runs.slice(runs.length) }, runs, signal);
        if (done) break;
        // Only code that attacks its supervisor gets here; the run is lost, those behind it get a sandbox of their own.
        runs.push(lostRun());
        if (request.stopOnFailure) break;
      }
      return { executionId: request.executionId, runs };
    } finally {
      leaveSlot();
    }
  }

  private async runInOne(request: ExecutionRequest, runs: RunResult[], signal: AbortSignal): Promise<boolean> {
    const sandbox = await this.driver.claim({ diskMiB: request.limits.diskMiB }, signal);
    try {
      return await sandbox.execute(request, (result) => runs.push(result), signal);
    } finally {
      // Destroyed behind the reply; after an abort it is gone already.
      void sandbox.release();
    }
  }
}

function lostRun(): RunResult {
  return {
    exit: 'kernel_lost',
    exitCode: null,
    signal: null,
    stdout: '',
    stderr: '',
    stdoutCutBytes: 0,
    stderrCutBytes: 0,
    cpuMs: 0,
    wallMs: 0,
    memoryPeakKiB: 0,
    error: { type: 'SandboxLost', message: 'the sandbox was lost while the code ran in it', line: null },
  };
}
