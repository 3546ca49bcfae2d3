import { MemoryWrite } from '@etude/contracts/memory';
import { MemoryWriteJob } from '@etude/contracts/queues';
import { type MemoryOutbox, writtenIn } from '@etude/domain/ports/memory';
import { marksOf, memberOf } from '../redis/keys.js';
import { parseStored } from '../jobs/job-end.js';
import type { DurableWork } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { RedisStore, runScript } from '../redis/redis.js';

/** `MemoryOutbox` in Redis: stores a write, then adds its job `memory.write` in the background. The reconciler adds a job that was lost. */
export class RedisMemoryOutbox implements MemoryOutbox {
  constructor(private readonly producer: Producer) {}

  /** Stores a write. A write that is older than the erasure of its owner is dropped. */
  async put(tenant: string, writeId: string, write: MemoryWrite): Promise<void> {
    const { redis, keys, tracing } = this.producer;
    const { scope, createdAt } = writtenIn(write);
    const stored = { ...write, traceparent: tracing.current };
    const places = [keys.memoryOutbox(tenant), keys.memoryOutboxIndex, keys.erased(tenant)];
    const args = [writeId, memberOf(tenant, writeId), JSON.stringify(stored), createdAt, ...marksOf(scope.agent, scope.user)];
    const answer = await runScript<number>(redis, 'putMemoryWrite', places, args);
    if (answer < 0) return;
    this.producer.addForRecord(MemoryWriteJob, { v: 1, tenant, writeId }).catch((error: unknown) => {
      this.producer.logger?.error({ tenant, writeId, error: String(error) }, 'The job of a memory write could not be added');
    });
  }
}

/** The stored writes that memory has not applied yet, for the reconciler. The operator has to redrive a dead job. */
export function memoryWrites({ redis, keys }: Producer): DurableWork {
  return {
    name: 'memory writes',
    outbox: keys.memoryOutboxIndex,
    queue: MemoryWriteJob,
    due: async (tenant, writeId) => {
      const stored = await redis.hget(keys.memoryOutbox(tenant), writeId);
      if (stored === null) return null;
      const { traceparent } = JSON.parse(stored) as { readonly traceparent?: string };
      return { payload: { v: 1, tenant, writeId }, options: { traceparent } };
    },
    onDead: async () => 'later',
  };
}

export class OutboxReader extends RedisStore {
  /** null if the write was applied and removed before. @throws EtudeError JOB_PAYLOAD_INVALID with the path of the wrong field */
  async load(tenant: string, writeId: string): Promise<MemoryWrite | null> {
    const text = await this.ask(this.redis.hget(this.keys.memoryOutbox(tenant), writeId));
    return text ? parseStored(MemoryWrite, JSON.parse(text), 'JOB_PAYLOAD_INVALID', `memory write ${writeId}`) : null;
  }

  /** Removes a write that was applied. A repeat changes nothing. */
  async remove(tenant: string, writeId: string): Promise<void> {
    const places = [this.keys.memoryOutbox(tenant), this.keys.memoryOutboxIndex];
    await this.run('removeMemoryWrite', places, [writeId, memberOf(tenant, writeId)]);
  }

  async pending(tenant: string): Promise<number> {
    return this.ask(this.redis.hlen(this.keys.memoryOutbox(tenant)));
  }
}
