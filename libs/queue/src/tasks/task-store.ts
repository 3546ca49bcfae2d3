import { EtudeError } from '@etude/contracts/errors';
import { rolloutIdOf, taskIdOf } from '@etude/contracts/ids';
import { RolloutLearn, RolloutRun } from '@etude/contracts/queues';
import { isFinal, type Learning, type TaskRecord, type TaskSpec, type TaskState, type TaskStrategy } from '@etude/contracts/task';
import { traceIdOf } from '@etude/contracts/tracing';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { LEARN_FROM } from '@etude/domain/ports/journal';
import { z } from 'zod';
import { memberOf, newId, RETENTION_MS, type RolloutAddress, taskKeys } from '../redis/keys.js';
import { type DurableWork, requestIdTaken } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { answersOf, newestFirst, type Page, type PageAsk } from '../redis/pages.js';
import { RedisStore } from '../redis/redis.js';
import { json, newTaskFields, openQuestion, readTaskRecord } from './task-record.js';
import { limitReached, limitsFrom, tagsApart, type TenantLimitsOf } from '../limits/tenant-limits.js';

const DAY_MS = 86_400_000;

/** Outcome, task id, place of its job, number of unfinished tasks. A refusal: outcome, and that number or the ms until the next submit. */
type Submitted = ['created' | 'known' | 'other' | 'tasks' | 'submits', string, number?, number?];

/** The settings of every service that ends tasks. Every service needs the same values. */
export const taskConfig = z.object({
  /** Days for which a task is kept after its end, with its journal and events. */
  ETUDE_TASK_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .max(3_650)
    .default(RETENTION_MS / DAY_MS),
});

export const retentionFrom = ({ ETUDE_TASK_RETENTION_DAYS: days }: z.infer<typeof taskConfig>): { readonly retentionMs: number } => ({
  retentionMs: Math.round(days * DAY_MS),
});

/** Tasks, for callers. A running rollout changes its task only through its journal. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class TaskStore extends RedisStore {
  readonly #retentionMs: number;

  /** @param limitsOf limits of a tenant; only `submit` needs them */
  constructor(
    private readonly producer: Producer,
    { retentionMs = RETENTION_MS }: { readonly retentionMs?: number } = {},
    private readonly limitsOf: TenantLimitsOf = limitsFrom({ ETUDE_TENANT_LIMITS: {} }),
  ) {
    super(producer.redis, producer.keys);
    this.#retentionMs = retentionMs;
  }

  /** Tasks that have not ended, for the reconciler. */
  get work(): DurableWork {
    return {
      name: 'rollouts',
      outbox: this.keys.rolloutOutbox,
      queue: RolloutRun,
      due: async (tenant, rolloutId) => {
        const taskId = taskIdOf(rolloutId);
        const answer = await this.#run<[string, string, number, string]>('placeOfTask', addressOf(tenant, taskId), []);
        const [state, asked, place, traceparent] = answer;
        if (!state || isFinal(state as TaskState)) return null;
        const notBefore = openQuestion(state, asked)?.deadlineAt;
        const options = { priority: place, traceparent: traceparent || undefined };
        return { payload: { v: 1, tenant, taskId, rolloutId }, options, notBefore };
      },
      onDead: async (tenant, rolloutId, { code, message }, diedAt) =>
        (await this.markFailed(tenant, taskIdOf(rolloutId), { code, message }, diedAt)) === 'requeued' ? 'again' : 'over',
    };
  }

  /** Learning that is pending, for the reconciler. */
  get learning(): DurableWork {
    return {
      name: 'learning',
      outbox: this.keys.learningOutbox,
      queue: RolloutLearn,
      due: async (tenant, rolloutId) => {
        const taskId = taskIdOf(rolloutId);
        const [state, traceparent] = await this.redis.hmget(this.keys.task(tenant, taskId), 'learning', 'traceparent');
        const options = { traceparent: traceparent ?? undefined };
        return state === 'pending' ? { payload: { v: 1, tenant, taskId, rolloutId }, options } : null;
      },
      onDead: async (tenant, rolloutId, { code, message }) => {
        await this.#run('endLearning', addressOf(tenant, taskIdOf(rolloutId)), ['', 'failed', JSON.stringify({ code, message })]);
        return 'over';
      },
    };
  }

  /** Adds the job of pending learning. The end of the rollout has written its outbox entry. */
  async startLearning(address: RolloutAddress): Promise<void> {
    await this.producer.addForRecord(RolloutLearn, { v: 1, ...address });
  }

  /** Makes failed learning pending again; the caller then retries its job. @returns the state of learning, or `gone` */
  async reopenLearning(tenant: string, taskId: string): Promise<'gone' | Learning['state']> {
    return this.#run('reopenLearning', addressOf(tenant, taskId), [LEARN_FROM]);
  }

  /**
   * Accepts a task, which is durable when this returns. A repeat with the same request id and spec returns the first task.
   *
   * @param requestId empty: every call is a new task
   * @param usual strategy of a task whose spec names no strategy
   * @throws EtudeError ALREADY_EXISTS when the request id was used with another spec; TENANT_LIMIT, never for a repeat
   */
  async submit(
    tenant: string,
    sent: TaskSpec,
    requestId: string,
    usual: TaskStrategy = 'attempts',
  ): Promise<{ record: TaskRecord; created: boolean }> {
    const spec = { ...sent, strategy: sent.strategy ?? usual };
    // Digest of the caller's own fields, so that a repeat finds its task even if the agent's strategy changed.
    const digest = contentDigest({ ...sent, strategy: sent.strategy ?? 'attempts' });
    const address = addressOf(tenant, newId('t'));
    const requestKey = requestId ? this.keys.request(tenant, 'submit', requestId) : '';
    const first = [memberOf(tenant, address.rolloutId), this.keys.wake(tenant, address.taskId), address.taskId, digest];
    const limits = this.limitsOf(tenant);
    const line = [spec.priority, tagsApart(limits), limits.tasks, limits.submitsPerMinute];
    const fields = newTaskFields(spec, requestKey, this.producer.tracing.current);
    const args = [...first, JSON.stringify({ type: 'state', state: 'queued' }), ...line, ...fields];
    const places = [...taskKeys(this.keys, address), this.keys.submits(tenant), requestKey];
    const [outcome, taskId, place, open] = await this.run<Submitted>('submitTask', places, args);
    if (outcome === 'other') throw requestIdTaken(requestId, `task ${taskId}`, { task: taskId });
    if (outcome === 'tasks' || outcome === 'submits') throw limitReached(tenant, outcome, Number(taskId), limits);
    if (outcome === 'created') await this.producer.addForRecord(RolloutRun, { v: 1, ...address }, { priority: place });
    // Tells workers that a tenant without tasks has submitted one: see `RolloutPlaces`. The caller needn't wait for it.
    if (open === 1) void this.redis.publish(this.keys.line, '').catch(() => undefined);
    const record = await this.get(tenant, taskId);
    if (!record) throw new EtudeError('NOT_FOUND', `task ${taskId} of request_id "${requestId}" is no longer kept; use a new request_id`);
    if (outcome === 'created') this.#log('queued', record);
    return { record, created: outcome === 'created' };
  }

  /** Whether a submit with this request id was accepted before. */
  async isKnown(tenant: string, requestId: string): Promise<boolean> {
    if (requestId === '') return false;
    return (await this.ask(this.redis.exists(this.keys.request(tenant, 'submit', requestId)))) === 1;
  }

  async get(tenant: string, taskId: string): Promise<TaskRecord | null> {
    const fields = await this.ask(this.redis.hgetall(this.keys.task(tenant, taskId)));
    return readTaskRecord(tenant, taskId, fields);
  }

  /** Newest first. Only tasks that pass the filter are read in full. A short page may not be the last one (see `Page.nextAfter`). */
  async list(tenant: string, filter: TaskFilter): Promise<Page<TaskRecord>> {
    const { redis, keys } = this;
    const wanted = Object.entries(filter.labels ?? {});
    const isWanted = (state: string, user: string | null, labels: Record<string, string>) =>
      (!filter.state || state === filter.state) &&
      (filter.user === undefined || user === filter.user) &&
      wanted.every(([name, value]) => labels[name] === value);
    const page = newestFirst(redis, keys.tasks(tenant), filter, async (ids) => {
      const looks = redis.pipeline();
      for (const id of ids) {
        const key = keys.task(tenant, id);
        looks.hmget(key, 'state', 'user', 'labels').hstrlen(key, 'spec').hstrlen(key, 'result');
      }
      const answers = await answersOf(looks);
      return ids.map((id, i) => {
        const [state, user, labels] = answers[3 * i] as [string | null, string | null, string | null];
        if (!state) return null;
        return {
          isWanted: isWanted(state, user ?? null, (json(labels) ?? {}) as Record<string, string>),
          bytes: Number(answers[3 * i + 1]) + Number(answers[3 * i + 2]),
          load: async () => readTaskRecord(tenant, id, await redis.hgetall(keys.task(tenant, id))),
        };
      });
    });
    return this.ask(page);
  }

  /**
   * Requests the cancel of a task. A task that is queued or waits for an answer ends at once, and so does pending learning. The worker of a
   * running task gets the request over the cancel channel, and again when it appends to the journal.
   *
   * @returns the task as it is now, or null
   */
  async requestCancel(tenant: string, taskId: string): Promise<TaskRecord | null> {
    const args = [this.#retentionMs, this.keys.cancel(tenant, taskId)];
    const outcome = await this.#run<string>('cancelTask', addressOf(tenant, taskId), args);
    const task = await this.get(tenant, taskId);
    if (outcome === 'cancelled') this.#log('cancelled', task);
    return task;
  }

  /**
   * Answers the open question of a task and queues its rollout again. A repeat with the same request id and answer changes nothing.
   *
   * @param answer.key the question to answer; empty: the open question
   * @returns the task as it is now, or null
   * @throws EtudeError FAILED_PRECONDITION if no question is open; INVALID_ARGUMENT for the key of another question; ALREADY_EXISTS
   */
  async answer(tenant: string, taskId: string, answer: { readonly key: string; readonly text: string }, requestId: string) {
    const address = addressOf(tenant, taskId);
    const args = [answer.key, JSON.stringify({ answer: answer.text }), requestId && `request:${requestId}`, contentDigest(answer)];
    const [outcome, told] = await this.#run<['answered', number] | [string, string?]>('answerTask', address, args);
    if (outcome === 'other') throw requestIdTaken(requestId, `a question of task ${taskId}`, { task: taskId });
    if (outcome === 'state') throw new EtudeError('FAILED_PRECONDITION', `task ${taskId} is ${told} and has no open question`);
    if (outcome === 'key') throw new EtudeError('INVALID_ARGUMENT', `key must be "${told}" (open question) or empty`, { field: 'key' });
    const task = await this.get(tenant, taskId);
    // The job that asked has the same id. If it has ended, it must be removed first.
    const options = { priority: Number(told), again: true, traceparent: task?.traceparent };
    if (outcome === 'answered') {
      this.#log('queued', task);
      await this.producer.addForRecord(RolloutRun, { v: 1, ...address }, options);
    }
    return task;
  }

  async cancelRequested(tenant: string, taskId: string): Promise<boolean> {
    return (await this.ask(this.redis.hget(this.keys.task(tenant, taskId), 'cancelRequested'))) === '1';
  }

  /**
   * Ends a task whose job is dead, and fences a worker that might still run it.
   *
   * @param diedAt when the job died, ms since 1970; a task that was redriven later is left alone
   * @returns `failed`: this call ended the task; otherwise why the task wasn't ended
   */
  async markFailed(
    tenant: string,
    taskId: string,
    error: { code: string; message: string },
    diedAt: number,
  ): Promise<'failed' | 'gone' | 'final' | 'requeued'> {
    const args = [this.#retentionMs, diedAt, JSON.stringify(error)];
    const outcome = await this.#run<'failed' | 'gone' | 'final' | 'requeued'>('failTask', addressOf(tenant, taskId), args);
    if (outcome === 'failed') this.#log('failed', await this.get(tenant, taskId), error.code);
    return outcome;
  }

  /** Sets a task that `markFailed` ended to `queued` again. The caller then retries its job. @returns the task's state, or `gone` */
  async requeue(tenant: string, taskId: string): Promise<'gone' | TaskState> {
    const outcome = await this.#run<'gone' | TaskState>('requeueTask', addressOf(tenant, taskId), [taskId]);
    if (outcome === 'queued') this.#log('queued', await this.get(tenant, taskId));
    return outcome;
  }

  /** Logs each state that a task gets here. The worker logs the other states. */
  #log(state: TaskState, task: TaskRecord | null, code?: string): void {
    if (task === null) return;
    const { tenant, id: taskId, traceparent } = task;
    const trace = traceparent === undefined ? {} : { traceId: traceIdOf(traceparent) };
    this.producer.logger?.info({ tenant, taskId, state, ...trace, ...(code && { errorCode: code }) }, `A task is ${state}`);
  }

  #run<Answer>(script: string, address: RolloutAddress, args: ReadonlyArray<string | number>): Promise<Answer> {
    const first = [memberOf(address.tenant, address.rolloutId), this.keys.wake(address.tenant, address.taskId)];
    return this.run(script, taskKeys(this.keys, address), [...first, ...args]);
  }
}

function addressOf(tenant: string, taskId: string): RolloutAddress {
  return { tenant, taskId, rolloutId: rolloutIdOf(taskId) };
}

interface TaskFilter extends PageAsk {
  readonly state?: TaskState;
  readonly user?: string;
  /** A task must have all of these labels. */
  readonly labels?: Readonly<Record<string, string>>;
}
