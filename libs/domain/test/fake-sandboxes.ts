import type { ExecutionRequest, ExecutionResult, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import type { Sandboxes } from '../src/ports/sandboxes.js';
import { CLEAN_RUN } from './run-results.js';

/** Returns the fields of a run's result that differ from a clean exit without output. */
export type FakeRun = (run: SandboxRun, request: ExecutionRequest) => Partial<RunResult> | Promise<Partial<RunResult>>;

/** Answers every run by one function, records every request, and runs no code. */
export class FakeSandboxes implements Sandboxes {
  readonly requests: ExecutionRequest[] = [];
  readonly #results = new Map<string, ExecutionResult>();

  constructor(private readonly answer: FakeRun) {}

  async execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    signal.throwIfAborted();
    const known = this.#results.get(request.executionId);
    if (known) return known;
    this.requests.push(structuredClone(request));
    const runs: RunResult[] = [];
    for (const run of request.runs) {
      runs.push({ ...CLEAN_RUN, ...(await this.answer(run, request)) });
      signal.throwIfAborted();
      if (request.stopOnFailure && runs.at(-1)?.exit !== 'ok') break;
    }
    const result = { executionId: request.executionId, runs };
    this.#results.set(request.executionId, result);
    return structuredClone(result);
  }
}
