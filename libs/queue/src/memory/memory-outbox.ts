import { MemoryWrite, type Scope } from '@etude/contracts/memory';
import { MemoryWriteJob } from '@etude/contracts/queues';
import type { MemoryOutbox } from '@etude/domain/ports/memory';
import type { Redis } from 'ioredis';
import { marksOf, memberOf, type RedisKeys } from '../redis/keys.js';
import { taskOfExecution } from '@etude/contracts/ids';
import { parseOr } from '../jobs/job-end.js';
import type { DurableWork } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { runScript, sentTogether, whileRedisAnswers } from '../redis/redis.js';

/** `MemoryOutbox` in Redis: the write first, then its job `memory.write`. */
export class RedisMemoryOutbox implements MemoryOutbox {
  constructor(private readonly producer: Producer) {}

  /**
   * Stores a write. A write that is older than the erasure of its owner is dropped.
   */
  async put(tenant: string, writeId: string, write: MemoryWrite): Promise<void> {
    const { redis } = this.producer;
    // The job of a task's write is added only once the write was taken. Any other is sent together with its write, and arrives behind it.
    if (taskOfExecution(writeId) !== null) {
      if ((await this.#store(tenant, writeId, write)) >= 0) await this.#addJob(tenant, writeId);
      return;
    }
    const [answer] = await sentTogether(redis, () => Promise.all([this.#store(tenant, writeId, write), this.#addJob(tenant, writeId)]));
    if (answer < 0) await whileRedisAnswers(redis, this.producer.queue(MemoryWriteJob.name).remove(writeId));
  }

  /** Below 0 where it was dropped. */
  #store(tenant: string, writeId: string, write: MemoryWrite): Promise<number> {
    const { redis, keys } = this.producer;
    const { scope, at } = ownerOf(write);
    const args = [writeId, memberOf(tenant, writeId), JSON.stringify(write), at, ...marksOf(scope.agent, scope.user)];
    return runScript<number>(redis, 'putMemoryWrite', [keys.memoryOutbox(tenant), keys.memoryOutboxIndex, keys.erased(tenant)], args);
  }

  #addJob(tenant: string, writeId: string): Promise<void> {
    return this.producer.addForRecord(MemoryWriteJob, { v: 1, tenant, writeId });
  }
}

/** Writes that memory has not taken yet, for the reconciler. A dead one is the operator's to redrive. */
export function memoryWrites({ redis, keys }: Producer): DurableWork {
  return {
    name: 'memory writes',
    outbox: keys.memoryOutboxIndex,
    queue: MemoryWriteJob,
    due: async (tenant, writeId) =>
      (await redis.hexists(keys.memoryOutbox(tenant), writeId)) === 1 ? { payload: { v: 1, tenant, writeId } } : null,
    onDead: async () => 'later',
  };
}

/** The outbox as the consolidation worker reads it. */
export class OutboxReader {
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
  ) {}

  /** null where it was applied and removed before. @throws EtudeError JOB_PAYLOAD_INVALID with the path that is wrong */
  async load(tenant: string, writeId: string): Promise<MemoryWrite | null> {
    const text = await whileRedisAnswers(this.redis, this.redis.hget(this.keys.memoryOutbox(tenant), writeId));
    return text ? parseOr(MemoryWrite, JSON.parse(text), 'JOB_PAYLOAD_INVALID', `memory write ${writeId}`) : null;
  }

  /** Call it after the write was applied; again changes nothing. */
  async remove(tenant: string, writeId: string): Promise<void> {
    await runScript(
      this.redis,
      'removeMemoryWrite',
      [this.keys.memoryOutbox(tenant), this.keys.memoryOutboxIndex],
      [writeId, memberOf(tenant, writeId)],
    );
  }

  /** Writes of this tenant that memory does not show yet. */
  async pending(tenant: string): Promise<number> {
    return whileRedisAnswers(this.redis, this.redis.hlen(this.keys.memoryOutbox(tenant)));
  }
}

/** The owner of a write, and when its content was made, ms since 1970. */
export function ownerOf(write: MemoryWrite): { readonly scope: Scope; readonly at: number } {
  if (write.kind === 'skill_use') return { scope: write.scope, at: write.at };
  const { scope, createdAt } = write.kind === 'transition' ? write.transition : write.kind === 'episode' ? write.episode : write.skill;
  return { scope, at: createdAt };
}
