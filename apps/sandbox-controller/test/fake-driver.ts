import { randomUUID } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { RunResult } from '@etude/contracts/sandbox';
import { CLEAN_RUN } from '@etude/domain/testing/run-results';
import type {
  ClaimedSandbox,
  ExecutionSink,
  LostSandbox,
  SandboxDriver,
  SandboxExecution,
  SandboxFiles,
} from '@etude/sandbox/sandbox-driver';

type Frame = { readonly kind: 'output'; readonly text: string } | { readonly kind: 'result'; readonly result: RunResult };

export const runResult = (more: Partial<RunResult> = {}): RunResult => ({ ...CLEAN_RUN, ...more });

const noFiles = new Proxy({} as SandboxFiles, {
  get: () => () => Promise.reject(new EtudeError('NOT_FOUND', 'a fake sandbox has no files')),
});

/** A sandbox that outlives the controller that claimed it. Its code is a list of words to print; "wait" waits for `go`. */
export class FakeSandbox {
  readonly place = `fake-${randomUUID()}`;
  readonly lost = Promise.withResolvers<LostSandbox>();
  readonly executions = new Map<string, Frame[]>();
  readonly ran: string[] = [];
  released = false;
  left = 0;
  #gate = Promise.withResolvers<void>();
  #grown = Promise.withResolvers<void>();
  #end: LostSandbox | null = null;

  /** Ends the "wait" that runs, or else the next one. */
  go(): void {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
  }

  lose(end: LostSandbox): void {
    this.#end = end;
    this.lost.resolve(end);
    this.#wake();
  }

  /** A claim of this sandbox, which may be claimed several times. */
  claimed(): ClaimedSandbox {
    return {
      place: this.place,
      lost: this.lost.promise,
      files: noFiles,
      execute: (execution, sink, signal) => this.#execute(execution, sink, signal),
      answer: () => Promise.reject(new Error('a fake sandbox calls no tools')),
      release: async () => {
        this.released = true;
        this.#end ??= { exit: 'kernel_lost', message: 'released' };
        this.#wake();
      },
      leave: async () => void (this.left += 1),
    };
  }

  async #execute({ executionId, runs }: SandboxExecution, sink: ExecutionSink, signal: AbortSignal): Promise<LostSandbox | null> {
    if (!this.executions.has(executionId)) {
      if (runs.length === 0) throw new EtudeError('NOT_FOUND', `execution "${executionId}" is not known in this sandbox`);
      this.executions.set(executionId, []);
      const [run] = runs;
      this.ran.push(executionId);
      void this.#run(executionId, run && 'code' in run ? run.code : '', signal);
    }
    const frames = this.executions.get(executionId)!;
    for (let at = 0; ; at++) {
      while (at >= frames.length && !this.#end) await this.#grown.promise;
      const frame = frames[at];
      if (!frame) return this.#end!;
      if (frame.kind === 'output') sink.output('stdout', frame.text);
      else {
        sink.result(frame.result);
        signal.throwIfAborted();
        return null;
      }
    }
  }

  async #run(executionId: string, code: string, signal: AbortSignal): Promise<void> {
    const frames = this.executions.get(executionId)!;
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    for (const word of code.split(' ')) {
      if (word === 'wait') await Promise.race([this.#gate.promise, stopped]);
      else frames.push({ kind: 'output', text: word });
      this.#wake();
      if (signal.aborted) break;
    }
    frames.push({ kind: 'result', result: signal.aborted ? runResult({ exit: 'cancelled' }) : runResult({ stdout: 'tail' }) });
    this.#wake();
  }

  #wake(): void {
    this.#grown.resolve();
    this.#grown = Promise.withResolvers();
  }
}

/** Sandboxes that several drivers can reach, like pods. */
export class FakeCluster {
  readonly sandboxes: FakeSandbox[] = [];
  /** Claims wait until this promise resolves. */
  gate: Promise<void> = Promise.resolve();

  get newest(): FakeSandbox {
    return this.sandboxes.at(-1)!;
  }

  driver(): SandboxDriver {
    return {
      claim: async (_shape, signal) => {
        await this.gate;
        signal.throwIfAborted();
        const sandbox = new FakeSandbox();
        this.sandboxes.push(sandbox);
        return sandbox.claimed();
      },
      attach: async (place: string) => {
        const found = this.sandboxes.find((one) => one.place === place && !one.released);
        if (!found) throw new EtudeError('SANDBOX_UNAVAILABLE', 'the fake sandbox is gone');
        return found.claimed();
      },
      counts: () => ({ free: 0, waiting: 0 }),
      check: () => undefined,
      close: async () => undefined,
    };
  }
}
