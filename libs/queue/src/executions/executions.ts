import { abortError, errorCode, EtudeError } from '@etude/contracts/errors';
import { taskOfExecution } from '@etude/contracts/ids';
import { SandboxExecute } from '@etude/contracts/queues';
import { ExecutionRequest, ExecutionResult, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bell, channelsOf } from '../redis/channels.js';
import { type JobEnd, leaseEndOf, parseStored } from '../jobs/job-end.js';
import type { AddOptions, Producer } from '../jobs/producer.js';
import { RedisStore, whileRedisAnswers } from '../redis/redis.js';

const RESULT_TTL_MS = 3_600_000;
const REQUEST_TTL_MS = 24 * 3_600_000;
/** How long a cancelled caller waits until the cancel is stored. */
const CANCEL_WAIT_MS = 1_000;
const ROUNDS_MAX = 3;
/** How often an execution is polled. A job that ends without a result sends no message, and a reconnect may lose messages. */
const LOOK_EVERY_MS = 1_000;

export interface StoredExecution {
  readonly request: ExecutionRequest;
  readonly result: ExecutionResult | null;
}

/** A job with a priority is taken only while no job without one waits. */
const SECOND_LINE: AddOptions = { priority: 1 };

/** Requests and results of executions. They are kept outside of the queue, because they may be megabytes. */
export class ExecutionStore extends RedisStore {
  /** null if the execution is unknown or expired. */
  async load(tenant: string, executionId: string): Promise<StoredExecution | null> {
    const read = this.redis.hmget(this.keys.execution(tenant, executionId), 'request', 'result');
    const [request, result] = await this.ask(read);
    if (!request) return null;
    return {
      request: parseStored(ExecutionRequest, JSON.parse(request), 'JOB_PAYLOAD_INVALID', `the request of execution ${executionId}`),
      result: result ? readResult(result, executionId) : null,
    };
  }

  /** Stores a result and wakes the waiters. The first result stays. A result with a retryable exit is dropped at the next request. */
  async save(tenant: string, executionId: string, result: ExecutionResult): Promise<void> {
    const spoilt = result.runs.some(({ exit }) => RETRYABLE_EXITS.has(exit));
    const args = [JSON.stringify(result), RESULT_TTL_MS, spoilt ? 1 : 0, this.keys.endedExecution(tenant, executionId)];
    await this.run('saveExecution', [this.keys.execution(tenant, executionId)], args);
  }

  /**
   * Stores the request unless there is one under its id. Returns the stored result; null if the execution has to run.
   * @throws EtudeError JOURNAL_FENCED if the execution's task was erased
   */
  async prepare(request: ExecutionRequest): Promise<ExecutionResult | null> {
    const { tenant, executionId } = request;
    const taskId = taskOfExecution(executionId);
    const places = [this.keys.execution(tenant, executionId), taskId ? this.keys.task(tenant, taskId) : '', this.keys.erased(tenant)];
    const args = [JSON.stringify(request), REQUEST_TTL_MS, request.files.length === 0 ? '' : JSON.stringify({ ...request, files: [] })];
    const result = await this.run<string>('prepareExecution', places, args);
    if (result === 'gone')
      throw new EtudeError('JOURNAL_FENCED', `task ${taskId} of execution ${executionId} was erased; stop and write nothing`);
    return result === '' ? null : readResult(result, executionId);
  }

  async result(tenant: string, executionId: string): Promise<ExecutionResult | null> {
    const text = await this.ask(this.redis.hget(this.keys.execution(tenant, executionId), 'result'));
    return text ? readResult(text, executionId) : null;
  }

  async cancelRequested(tenant: string, executionId: string): Promise<boolean> {
    return (await this.ask(this.redis.hget(this.keys.execution(tenant, executionId), 'cancelRequested'))) === '1';
  }

  /** Stores the cancel request and notifies the controller. @returns false for an execution that is unknown or has a result */
  async cancel(tenant: string, executionId: string): Promise<boolean> {
    const places = [this.keys.execution(tenant, executionId)];
    return (await this.run<number>('cancelExecution', places, [this.keys.cancelExecution(tenant, executionId)])) === 1;
  }
}

/** `Sandboxes` through the queue `sandbox.execute`, whose consumers run the code. Tenants take turns (`ExecutionLines`). */
export class QueueSandboxes implements Sandboxes {
  readonly #store: ExecutionStore;
  readonly #lines = new ExecutionLines();

  constructor(private readonly producer: Producer) {
    this.#store = new ExecutionStore(producer.redis, producer.keys);
  }

  execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    return this.producer.tracing.span('sandbox.execute', {}, async (span) => {
      span.set({ 'etude.execution': request.executionId });
      const result = await this.#execute(request, signal);
      span.set({ 'etude.sandbox.exits': result.runs.map(({ exit }) => exit) });
      return result;
    });
  }

  async #execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    if (signal.aborted) throw abortError(signal);
    const { redis, keys } = this.producer;
    const { tenant, executionId } = request;
    const bell = new Bell(LOOK_EVERY_MS);
    using subscribed = channelsOf(redis).listen(keys.endedExecution(tenant, executionId), bell.ring);
    const listening = whileRedisAnswers(redis, subscribed.ready);
    const place = this.#lines.enter(tenant, bell);
    try {
      for (let round = 1; round <= ROUNDS_MAX; round++) {
        if (signal.aborted) throw abortError(signal);
        const result = await this.#askAndWait(request, place, listening, signal);
        if (result) return result;
        // The job ended without a result: an earlier caller cancelled it, or its request or result has expired.
        await this.producer.forget(SandboxExecute.name, executionId);
      }
    } finally {
      this.#lines.leave(place);
    }
    const message = `execution ${executionId} ended ${ROUNDS_MAX} times without a result; look at the sandbox controller's log`;
    throw new EtudeError('SANDBOX_UNAVAILABLE', message);
  }

  /**
   * @param listening settles once the bell is subscribed, so that it rings for every later result
   * @returns null if the job ended without a result
   * @throws the EtudeError that the job died of; AbortError
   */
  async #askAndWait(
    request: ExecutionRequest,
    place: PlaceInLine,
    listening: Promise<unknown>,
    signal: AbortSignal,
  ): Promise<ExecutionResult | null> {
    const { tenant, executionId } = request;
    const askedAt = Date.now();
    const [known] = await Promise.all([this.#store.prepare(request), listening]);
    if (known !== null) return known;
    const payload = { v: 1, tenant, executionId, taskId: taskOfExecution(executionId) } as const;
    await this.producer.add(SandboxExecute, payload, place.isFirst ? {} : SECOND_LINE);
    for (;;) {
      await place.bell.rung(signal);
      if (signal.aborted) throw await this.#abandon(request, signal);
      const end = await this.#look(request);
      if (end === 'running') {
        // The place may have moved into the first line, or another process may have added the job to the second line.
        if (place.isFirst) void this.producer.urge(SandboxExecute.name, executionId).catch(() => undefined);
        continue;
      }
      if (signal.aborted) throw abortError(signal);
      if (end === null || !('kind' in end)) return end;
      if (end.kind === 'failed') await this.#forgive(request, end.error, askedAt);
      return null;
    }
  }

  async #look({ tenant, executionId }: ExecutionRequest): Promise<ExecutionResult | JobEnd | 'running'> {
    try {
      const result = await this.#store.result(tenant, executionId);
      return result ?? (await this.producer.endOf(SandboxExecute.name, executionId)) ?? 'running';
    } catch (error) {
      // When Redis is away, the state is read again at the next wake-up.
      if (errorCode(error) === 'QUEUE_UNAVAILABLE') return 'running';
      throw error;
    }
  }

  /** Lets a dead job be added again if a retry may succeed. @throws `error` if not */
  async #forgive({ executionId }: ExecutionRequest, error: Error, askedAt: number): Promise<void> {
    // The request of an earlier job may have expired before a worker took the job.
    if (errorCode(error) === 'NOT_FOUND') return;
    if (!(await this.producer.revive(SandboxExecute.name, executionId, error, askedAt))) throw error;
  }

  /**
   * Cancels the execution after the caller aborted. If only this worker's lease ended, the execution runs on for the next worker. When
   * Redis is away, the execution's own limits end it. @returns the AbortError for the caller
   */
  async #abandon({ tenant, executionId }: ExecutionRequest, signal: AbortSignal): Promise<Error> {
    if (leaseEndOf(signal)) return abortError(signal);
    const cancelled = this.#store.cancel(tenant, executionId).catch(() => false);
    await Promise.race([cancelled, sleep(CANCEL_WAIT_MS, undefined, { ref: false })]);
    return abortError(signal);
  }
}

function readResult(text: string, executionId: string): ExecutionResult {
  return parseStored(ExecutionResult, JSON.parse(text), 'INTERNAL', `the result of execution ${executionId}`);
}

/** The most executions of one tenant that one process has in the first line at once. */
export const FIRST_LINE_MAX = 4;

interface PlaceInLine {
  readonly tenant: string;
  /** Rings when the result is stored, and when the place moves into the first line; also wakes the waiter every LOOK_EVERY_MS. */
  readonly bell: Bell;
  isFirst: boolean;
}

/**
 * Two lines of executions, so that tenants take turns. Each tenant has at most FIRST_LINE_MAX executions in the first line and the rest in the
 * second. The second line is served while nobody waits in the first. When an execution ends, the tenant's oldest in the second line moves up. So an
 * execution waits for only a few executions of each other tenant, and a tenant with many still makes progress. Each process counts only its own
 * executions.
 */
class ExecutionLines {
  readonly #places = new Map<string, readonly PlaceInLine[]>();

  enter(tenant: string, bell: Bell): PlaceInLine {
    const places = this.#places.get(tenant) ?? [];
    const place = { tenant, bell, isFirst: places.length < FIRST_LINE_MAX };
    this.#places.set(tenant, [...places, place]);
    return place;
  }

  /** Call it once, when nobody waits for the execution any more. */
  leave(place: PlaceInLine): void {
    const left = (this.#places.get(place.tenant) ?? []).filter((one) => one !== place);
    if (left.length === 0) this.#places.delete(place.tenant);
    else this.#places.set(place.tenant, left);
    const next = left[FIRST_LINE_MAX - 1];
    if (next === undefined || next.isFirst) return;
    next.isFirst = true;
    next.bell.ring();
  }
}
