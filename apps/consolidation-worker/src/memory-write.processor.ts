import type { MemoryWrite } from '@etude/contracts/memory';
import { MemoryWriteJob, SkillVerify } from '@etude/contracts/queues';
import type { AppliedWrite } from '@etude/memory/layers/applied-writes';
import { isErased } from '@etude/memory/layers/upkeep/erasure-marks';
import type { Memory } from '@etude/memory/memory';
import type { JobHandler } from '@etude/queue/consumer';
import type { OutboxReader } from '@etude/queue/memory-outbox';
import type { Producer } from '@etude/queue/producer';
import type { NightlySchedules } from './nightly-schedules.js';

const NOTHING: AppliedWrite = { applied: false, skill: null };

export interface MemoryWriteDeps {
  readonly memory: Pick<Memory, 'appliedWrites'>;
  readonly outbox: OutboxReader;
  readonly producer: Producer;
  readonly schedules: NightlySchedules;
}

/**
 * Applies one write of the outbox. Memory takes each write id once, and the entry leaves the outbox last: a crash anywhere before
 * that repeats the job and changes nothing more. When the attempts run out the entry stays, so that redriving the job applies it.
 */
export function memoryWriteProcessor({
  memory,
  outbox,
  producer,
  schedules,
}: MemoryWriteDeps): JobHandler<typeof MemoryWriteJob.payload, typeof MemoryWriteJob.result> {
  return async ({ tenant, writeId }) => {
    const write = await outbox.load(tenant, writeId);
    if (write === null) return { applied: false };
    const { applied, skill } = await applyUnlessErased(memory, tenant, writeId, write);
    if (skill?.status === 'candidate') {
      const { scope, name, version, digest } = skill;
      await producer.add(SkillVerify, { v: 1, tenant, agent: scope.agent, name, version, digest });
    }
    await outbox.remove(tenant, writeId);
    await schedules.ensure(tenant);
    return { applied };
  };
}

/** A write of somebody who was erased since it was made is done with. */
async function applyUnlessErased(
  { appliedWrites }: MemoryWriteDeps['memory'],
  tenant: string,
  writeId: string,
  write: MemoryWrite,
): Promise<AppliedWrite> {
  try {
    return await appliedWrites.apply(tenant, writeId, write);
  } catch (error) {
    if (isErased(error)) return NOTHING;
    throw error;
  }
}
