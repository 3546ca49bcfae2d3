import { EtudeError } from '@etude/contracts/errors';
import { RETRYABLE_EXITS, type ExecutionRequest, type ExecutionResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { RunAssembly } from './run-assembly.js';
import type { ExecutionEnd, ExecutionSink, SandboxDriver } from './sandbox-driver.js';

/** So many at once, the others wait in order. */
export class Slots {
  private taken = 0;
  private readonly waiting: Array<() => void> = [];

  constructor(
    private readonly max: number,
    private readonly waitingMax: number,
  ) {}

  /**
   * Resolves with what gives the slot back; call it once.
   *
   * @throws EtudeError SANDBOX_CAPACITY when too many wait already; the signal's reason when it aborts first
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.taken < this.max) this.taken += 1;
    else await this.wait(signal);
    return () => this.leave();
  }

  private wait(signal: AbortSignal): Promise<void> {
    if (this.waiting.length >= this.waitingMax) {
      throw new EtudeError(
        'SANDBOX_CAPACITY',
        `${this.max} sandboxes are running and ${this.waiting.length} executions wait; try again later`,
      );
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', abandon);
        resolve();
      };
      const abandon = () => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abandon, { once: true });
      this.waiting.push(enter);
    });
  }

  /** The slot passes to who waits longest. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.taken -= 1;
  }
}

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

/** By the infrastructure: asked for again, it is run again. */
const isSpoilt = ({ runs }: ExecutionResult) => runs.some(({ exit }) => RETRYABLE_EXITS.has(exit));

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
      (result) => (isSpoilt(result) ? this.forget(key, running) : this.forgetOldest()),
      () => this.forget(key, running),
    );
    return running;
  }

  private forget(key: string, running: Running): void {
    if (this.known.get(key) === running) this.known.delete(key);
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
      const assembly = new RunAssembly();
      while (assembly.results.length < request.runs.length) {
        const left = { ...request, runs: request.runs.slice(assembly.results.length) };
        const end = await this.runInOne(left, assembly.behind(), signal);
        if (end.ended === 'done') break;
        assembly.lose(end);
        // Only code that attacks its supervisor loses its kernel; those behind it get a sandbox of their own.
        if (end.exit !== 'kernel_lost' || request.stopOnFailure) break;
      }
      return { executionId: request.executionId, runs: assembly.results };
    } finally {
      leaveSlot();
    }
  }

  private async runInOne(request: ExecutionRequest, sink: ExecutionSink, signal: AbortSignal): Promise<ExecutionEnd> {
    const { memoryMiB, diskMiB } = request.limits;
    const sandbox = await this.driver.claim({ template: request.template ?? 'default', memoryMiB, diskMiB }, signal);
    try {
      return await sandbox.execute(request, sink, signal);
    } finally {
      // Destroyed behind the reply; after an abort it is gone already.
      void sandbox.release();
    }
  }
}
