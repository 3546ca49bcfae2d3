import { errorCode } from '@etude/contracts/errors';
import type { MemoryWrite } from '@etude/contracts/memory';
import { MemoryWriteJob, SkillVerify, verificationOf } from '@etude/contracts/queues';
import type { AppliedWrite, Memory } from '@etude/memory/memory';
import type { AgentSettingsReader } from '@etude/domain/ports/agent-settings';
import { isWithoutRoom } from '@etude/domain/skills/life/register-skill';
import { isErased } from '@etude/memory/upkeep/erasure-marks';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { OutboxReader } from '@etude/queue/memory/memory-outbox';
import type { Producer } from '@etude/queue/jobs/producer';
import type { QueueLogger } from '@etude/queue/redis/redis';
import type { NightlySchedules } from './nightly-schedules.js';

const NOTHING: AppliedWrite = { applied: false, skill: null };

export interface MemoryWriteDeps {
  readonly memory: Pick<Memory, 'appliedWrites'>;
  readonly outbox: OutboxReader;
  readonly producer: Producer;
  readonly schedules: NightlySchedules;
  /** Settings of the agents: how many skills each may have. */
  readonly settings: AgentSettingsReader;
  readonly logger: QueueLogger;
}

/**
 * Applies one write of the outbox. Memory applies each write id once, and the entry is removed from the outbox last. So a job that is
 * repeated after a crash changes nothing more. If all attempts fail, the entry stays, so that redriving the job applies it.
 */
export function memoryWriteProcessor(deps: MemoryWriteDeps): JobHandler<typeof MemoryWriteJob.payload, typeof MemoryWriteJob.result> {
  const { outbox, producer, schedules } = deps;
  return async ({ tenant, writeId }) => {
    const write = await outbox.load(tenant, writeId);
    if (write === null) return { applied: false };
    const { applied, skill } = await applyUnlessRefused(deps, tenant, writeId, write);
    if (skill?.status === 'candidate') await producer.add(SkillVerify, verificationOf(skill));
    await outbox.remove(tenant, writeId);
    await schedules.ensure(tenant);
    return { applied };
  };
}

/**
 * Drops a write if its owner was erased since, and a use of a skill that was deleted since. Also drops a learned skill if the agent has no room: no caller requested it, and it can be
 * learned again from its rollout or episodes.
 */
async function applyUnlessRefused(
  { memory, settings, logger }: MemoryWriteDeps,
  tenant: string,
  writeId: string,
  write: MemoryWrite,
): Promise<AppliedWrite> {
  try {
    const namesMax = write.kind === 'skill' ? (await settings.get(tenant, write.skill.scope.agent)).settings.maxSkills : 0;
    return await memory.appliedWrites.apply(tenant, writeId, write, { namesMax });
  } catch (error) {
    if (isErased(error) || (write.kind === 'skill_use' && errorCode(error) === 'NOT_FOUND')) return NOTHING;
    if (write.kind !== 'skill' || !isWithoutRoom(error)) throw error;
    logger.warn(
      { tenant, agent: write.skill.scope.agent, skill: write.skill.name, writeId },
      'a learned skill was dropped: the agent has reached its maxSkills',
    );
    return NOTHING;
  }
}
