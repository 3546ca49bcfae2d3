import { unlessAborted } from '@etude/contracts/aborts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import type { TaskEventSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { isFinal, type TaskRecord } from '@etude/contracts/task';
import type { Producer } from '@etude/queue/jobs/producer';
import { isConnectionError } from '@etude/queue/redis/redis';
import { readEvents, type StoredEvent } from '@etude/queue/tasks/events';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import { eventMessage } from './task-message.js';

const AWAY = 'Redis became unreachable while events were read. Call again with the last resume_token.';

/** Follows tasks by their event streams, without polling. */
export class TaskWatcher {
  constructor(
    private readonly tasks: TaskStore,
    private readonly producer: Pick<Producer, 'redis' | 'keys'>,
  ) {}

  /** The events as callers see them. The `finished` event contains the final task. */
  async *watch(
    tenant: string,
    taskId: string,
    afterId: string | null,
    signal: AbortSignal,
  ): AsyncGenerator<MessageInitShape<typeof TaskEventSchema>> {
    for await (const stored of this.#events(tenant, taskId, afterId, signal)) {
      const task = stored.event.type === 'finished' ? await this.tasks.get(tenant, taskId) : null;
      yield eventMessage(taskId, stored, task);
    }
  }

  /**
   * The task once it is final, or its state after `withinMs`; null if it doesn't exist.
   *
   * @throws the reason of `signal` if it aborts earlier
   */
  async waitUntilFinal(tenant: string, taskId: string, withinMs: number, signal: AbortSignal): Promise<TaskRecord | null> {
    const record = await this.tasks.get(tenant, taskId);
    if (!record || isFinal(record.state)) return record;
    const late = AbortSignal.timeout(Math.floor(withinMs));
    try {
      for await (const { event } of this.#events(tenant, taskId, null, AbortSignal.any([signal, late])))
        if (event.type === 'finished') break;
    } catch (error) {
      if (!late.aborted || signal.aborted) throw error;
    }
    signal.throwIfAborted();
    return this.tasks.get(tenant, taskId);
  }

  /**
   * Events after `afterId` (null: from the start) in order, up to `finished`. An abort takes effect at once, even while Redis is
   * unreachable.
   *
   * @throws EtudeError QUEUE_UNAVAILABLE, NOT_FOUND; the signal's reason
   */
  async *#events(tenant: string, taskId: string, afterId: string | null, signal: AbortSignal): AsyncGenerator<StoredEvent> {
    const source = readEvents(this.producer.redis, this.producer.keys, tenant, taskId, afterId ?? '', signal);
    try {
      for (;;) {
        const next = await unlessAborted(source.next(), signal);
        signal.throwIfAborted();
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      throw isConnectionError(error) ? new EtudeError('QUEUE_UNAVAILABLE', AWAY, {}, { cause: error }) : error;
    } finally {
      // Not awaited, because a read from an unreachable Redis may take long. Nobody needs its error.
      source.return().catch(() => undefined);
    }
  }
}
