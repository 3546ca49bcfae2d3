import { errorCode, EtudeError } from '@etude/contracts/errors';
import { RolloutId, taskIdOf } from '@etude/contracts/ids';
import { SandboxExecute } from '@etude/contracts/queues';
import { ExecutionRequest, ExecutionResult, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { Redis } from 'ioredis';
import { parseOr } from './job-failure.js';
import type { RedisKeys } from './keys.js';
import { abortError, leaseEndOf } from './lease.js';
import type { Producer } from './producer.js';
import { whileRedisAnswers } from './redis.js';
import { runScript } from './run-script.js';
import { memberOf } from './task-keys.js';

const RESULT_TTL_MS = 3_600_000;
const REQUEST_TTL_MS = 24 * 3_600_000;
/** How long a cancelled caller waits for the code to be stopped. */
const STOP_WAIT_MS = 1_000;
const ROUNDS_MAX = 3;

export interface StoredExecution {
  readonly request: ExecutionRequest;
  readonly result: ExecutionResult | null;
  readonly cancelRequested: boolean;
}

/** Requests and results of executions, kept beside the queue: they may be megabytes. */
export class ExecutionStore {
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
  ) {}

  /** null where the execution is unknown or expired. */
  async load(tenant: string, executionId: string): Promise<StoredExecution | null> {
    const [request, result, cancelled] = await whileRedisAnswers(
      this.redis,
      this.redis.hmget(this.keys.execution(tenant, executionId), 'request', 'result', 'cancelRequested'),
    );
    if (!request) return null;
    return {
      request: parseOr(ExecutionRequest, JSON.parse(request), 'JOB_PAYLOAD_INVALID', `the request of execution ${executionId}`),
      result: result ? readResult(result, executionId) : null,
      cancelRequested: cancelled === '1',
    };
  }

  /** The first result stays, until somebody asks anew for one that the infrastructure spoilt. */
  async save(tenant: string, executionId: string, result: ExecutionResult): Promise<void> {
    const spoilt = result.runs.some(({ exit }) => RETRYABLE_EXITS.has(exit));
    const args = [JSON.stringify(result), RESULT_TTL_MS, spoilt ? 1 : 0];
    await runScript(this.redis, 'saveExecution', [this.keys.execution(tenant, executionId)], args);
  }

  /**
   * Stores the request unless there is one under this id. Answers the result if it ran before, and to its end.
   *
   * @throws EtudeError JOURNAL_FENCED where the task that it is for was erased
   */
  async prepare(request: ExecutionRequest): Promise<ExecutionResult | null> {
    const { tenant, executionId } = request;
    const taskId = taskOfExecution(executionId);
    const answer = await runScript<string | null>(
      this.redis,
      'prepareExecution',
      [this.keys.execution(tenant, executionId), taskId ? this.keys.task(tenant, taskId) : '', this.keys.erased(tenant)],
      [JSON.stringify(request), REQUEST_TTL_MS],
    );
    if (answer === 'gone')
      throw new EtudeError('JOURNAL_FENCED', `task ${taskId} is gone, and execution ${executionId} with it; stop and write nothing`);
    return answer ? readResult(answer, executionId) : null;
  }

  async result(tenant: string, executionId: string): Promise<ExecutionResult | null> {
    const text = await whileRedisAnswers(this.redis, this.redis.hget(this.keys.execution(tenant, executionId), 'result'));
    return text ? readResult(text, executionId) : null;
  }

  async cancelRequested(tenant: string, executionId: string): Promise<boolean> {
    return (await whileRedisAnswers(this.redis, this.redis.hget(this.keys.execution(tenant, executionId), 'cancelRequested'))) === '1';
  }

  /** Notes the wish and tells the controllers. @returns whether there was anything to cancel */
  async cancel(tenant: string, executionId: string): Promise<boolean> {
    const args = [this.keys.cancelExecution, memberOf(tenant, executionId)];
    return (await runScript<number>(this.redis, 'cancelExecution', [this.keys.execution(tenant, executionId)], args)) === 1;
  }
}

/** `Sandboxes` over the queue `sandbox.execute`: whoever consumes it runs the code. */
export class QueueSandboxes implements Sandboxes {
  readonly #store: ExecutionStore;

  constructor(private readonly producer: Producer) {
    this.#store = new ExecutionStore(producer.redis, producer.keys);
  }

  async execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    const prepared = this.#store.prepare(request);
    // The job of an erased task must not be added; any other is on its way while the request is being stored, and arrives behind it.
    const ran = taskOfExecution(request.executionId) === null ? null : await prepared;
    if (ran) return ran;
    const [known] = await Promise.all([prepared, this.#run(request, signal)]);
    if (known) return known;
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      if (round > 1) await this.#run(request, signal);
      const result = await this.#store.result(request.tenant, request.executionId);
      if (result) return result;
      // Its job ended without one: it was cancelled in an earlier life, came before its request, or the result expired.
      await this.producer.forget(SandboxExecute.name, request.executionId);
      await this.#store.prepare(request);
    }
    throw new EtudeError(
      'SANDBOX_UNAVAILABLE',
      `execution ${request.executionId} ended ${ROUNDS_MAX} times without a result; look at the sandbox controller's log`,
    );
  }

  async #run({ tenant, executionId }: ExecutionRequest, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortError(signal);
    const payload = { v: 1 as const, tenant, executionId, taskId: taskOfExecution(executionId) };
    const patience = new AbortController();
    const ended = this.producer.addAndWait(SandboxExecute, payload, patience.signal);
    const onAbort = () => void this.#abandon(tenant, executionId, signal, patience);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await ended;
    } catch (error) {
      if (!signal.aborted && errorCode(error) !== 'NOT_FOUND') throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      patience.abort();
    }
    if (signal.aborted) throw abortError(signal);
  }

  /** Where only this worker's lease ended, the execution is left running for the next one. */
  async #abandon(tenant: string, executionId: string, signal: AbortSignal, patience: AbortController): Promise<void> {
    if (leaseEndOf(signal)) return patience.abort();
    const timer = setTimeout(() => patience.abort(), STOP_WAIT_MS);
    patience.signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
    try {
      if (!(await this.#store.cancel(tenant, executionId))) patience.abort();
    } catch {
      // Redis is away: nobody can be told, and the caller is not kept waiting; the execution's own limits end it.
      patience.abort();
    }
  }
}

/** null where it is for no task, such as for verifying a skill. */
export function taskOfExecution(executionId: string): string | null {
  const rollout = RolloutId.safeParse(executionId.split('.')[0]);
  return rollout.success ? taskIdOf(rollout.data) : null;
}

function readResult(text: string, executionId: string): ExecutionResult {
  return parseOr(ExecutionResult, JSON.parse(text), 'INTERNAL', `the result of execution ${executionId}`);
}
