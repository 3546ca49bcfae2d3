import { errorCode } from '@etude/contracts/errors';
import type { MemoryWrite } from '@etude/contracts/memory';
import { type MemorySettleJob, type MemoryUpkeepJob, MemoryWriteJob, SkillVerify, verificationOf } from '@etude/contracts/queues';
import type { AgentSettingsReader } from '@etude/domain/ports/agent-settings';
import type { ChatModel } from '@etude/domain/ports/model';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { pruneSkills } from '@etude/domain/skills/life/prune';
import { isWithoutRoom } from '@etude/domain/skills/life/register-skill';
import { counter } from '@etude/platform/metrics';
import type { AppliedWrite, Memory, StoreReport } from '@etude/memory/memory';
import { isErased } from '@etude/memory/upkeep/erasure-marks';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { Producer } from '@etude/queue/jobs/producer';
import type { OutboxReader } from '@etude/queue/memory/memory-outbox';
import type { SettlingStore } from '@etude/queue/memory/settling-store';
import type { QueueLogger } from '@etude/queue/redis/redis';
import type { z } from 'zod';
import type { NightlySchedules } from '@etude/queue/jobs/scheduler';
import { type EraseDeps, eraseSubject } from './erase-subject.js';
import { moveVectors, type ReembedDeps } from './move-vectors.js';

const skillUses = counter({ name: 'etude_skill_uses_total', help: 'Uses of skills, by whether they succeeded', labels: ['success'] });

const NOTHING: AppliedWrite = { applied: false, skill: null };

export interface MemoryWriteDeps {
  readonly memory: Pick<Memory, 'appliedWrites'>;
  readonly outbox: OutboxReader;
  readonly producer: Producer;
  readonly schedules: NightlySchedules;
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
    if (applied && write.kind === 'skill_use') skillUses.inc({ success: String(write.success) });
    if (skill?.status === 'candidate') await producer.add(SkillVerify, verificationOf(skill));
    await outbox.remove(tenant, writeId);
    await schedules.ensure(tenant);
    return { applied };
  };
}

/**
 * Drops a write if its owner was erased since, and a use of a skill that was deleted since. Also drops a learned skill if the agent has no
 * room: no caller requested it, and it can be learned again from its rollout or episodes.
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

interface MemorySettleDeps {
  readonly memory: Pick<Memory, 'semantic' | 'conversations' | 'store'>;
  readonly model: ChatModel;
  readonly settling: SettlingStore;
  readonly settings: AgentSettingsReader;
  readonly callsPerDay: number;
  readonly logger: QueueLogger;
}

const BUSY_WAIT_MS = 15_000;
const FAILURE_WAIT_MS = 300_000;

/** This many turns add as much to the budget as one stored fact, because few turns contain a fact. */
const TURNS_PER_FACT = 4;

/**
 * Reads the unread turns of a tenant's conversations for facts, then compares its unsettled facts. If the model fails, the facts stay
 * unsettled and another job tries again later, so that an outage leaves no dead letters.
 */
export function memorySettleProcessor(deps: MemorySettleDeps): JobHandler<typeof MemorySettleJob.payload, typeof MemorySettleJob.result> {
  const { memory, model, settling, settings, callsPerDay, logger } = deps;
  const count = (tenant: string, kind: 'fact' | 'turn') => memory.store.count({ tenant }, 'semantic', { kinds: [kind] });
  const earning = async (tenant: string) => (await count(tenant, 'fact')) + Math.ceil((await count(tenant, 'turn')) / TURNS_PER_FACT);
  return async ({ tenant }, { jobId, signal }) => {
    let failure: string | null = null;
    const idle = async () => ({ modelCalls: 0, left: await memory.semantic.unsettled(tenant), failure });
    if (callsPerDay === 0) return idle();
    if (!(await settling.take(tenant, jobId))) {
      await settling.request(tenant, BUSY_WAIT_MS);
      return idle();
    }
    try {
      const budget = {
        left: async () => settling.left(tenant, await earning(tenant), callsPerDay),
        charge: (promptTokens: number) => settling.charge(tenant, promptTokens),
      };
      const isOn = async (agent: string) => (await settings.get(tenant, agent)).settings.settleFacts;
      const read = await memory.conversations.read(tenant, { model, budget, isOn, signal });
      if (read.modelCalls > 0) logger.info({ tenant, ...read }, 'conversations were read for facts');
      const { modelCalls, left, decided } = await memory.semantic.settle(tenant, { model, budget, isOn, signal });
      logger.info({ tenant, modelCalls, left, ...decided }, 'facts were compared');
      return { modelCalls: read.modelCalls + modelCalls, left, failure };
    } catch (error) {
      if (!errorCode(error).startsWith('MODEL_')) throw error;
      failure = `${errorCode(error)}: ${(error as Error).message}`;
      logger.warn({ tenant, failure }, 'facts stay unsettled: the model failed');
      await settling.request(tenant, FAILURE_WAIT_MS);
      return await idle();
    } finally {
      await settling.end(tenant, jobId, failure);
    }
  };
}

/** Starts reading turns and comparing facts for every tenant, since nobody else adds a job that was lost with its process. */
export async function settleAll({ memory, settling }: Pick<MemorySettleDeps, 'memory' | 'settling'>): Promise<void> {
  for (const tenant of await memory.store.tenants()) {
    const isWaiting = (await memory.semantic.unsettled(tenant)) > 0 || (await memory.conversations.unread(tenant)) > 0;
    if (isWaiting) await settling.request(tenant);
  }
}

export type MemoryUpkeepDeps = EraseDeps & ReembedDeps;

/** Does work on memory as a whole. Each kind of work keeps its own record, so that a worker that takes the job over can continue. */
export function memoryUpkeepProcessor(deps: MemoryUpkeepDeps): JobHandler<typeof MemoryUpkeepJob.payload, typeof MemoryUpkeepJob.result> {
  const { upkeep } = deps.memory;
  return async (payload, context) => {
    if (payload.work === 'erase') await eraseSubject(payload, deps, context);
    if (payload.work === 'reembed') await moveVectors(payload.id, deps, context);
    if (payload.work === 'reconcile') return { report: sentencesOf(await upkeep.reconcile()) };
    if (payload.work === 'prune') return { archived: await pruneBySchedule(payload, deps) };
    if (payload.work !== 'archive') return {};
    const { tenant, scoreMax, olderThanDays } = payload;
    const { archived } = await upkeep.archive({ tenant }, { scoreMax, olderThanDays }, { dryRun: false }, context.signal);
    return { archived: archived + (await upkeep.archiveHarmful({ tenant }, context.signal)) };
  };
}

function sentencesOf({ checked, repaired, problems }: StoreReport) {
  return { checked: { ...checked }, repaired: [...repaired], problems: [...problems] };
}

type PruneWork = Extract<z.infer<typeof MemoryUpkeepJob.payload>, { work: 'prune' }>;

/** Prunes a tenant's skills by the limits of its schedule. A repeat of a firing completes its prune. @returns the number of archived skills */
async function pruneBySchedule({ tenant, id, ...policy }: PruneWork, { memory, clock }: MemoryUpkeepDeps): Promise<number> {
  const pruneId = `p${contentDigest([tenant, id]).slice(0, 16)}`;
  const { pruned } = await pruneSkills({ tenant, agent: null, policy, pruneId, by: 'pruning', dryRun: false, at: clock.now() }, memory);
  return pruned.length;
}
