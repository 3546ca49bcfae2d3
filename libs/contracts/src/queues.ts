import { z } from 'zod';
import { AgentId, OwnerAgent, OwnerTenant, RolloutId, SkillName, TaskId, TenantId, UserId } from './ids.js';
import type { Skill } from './memory.js';

/** Payloads and results take fields that a newer version added, and leave them out: two versions run side by side in an upgrade. */
export interface QueueDeclaration<P extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly payload: P;
  readonly result: R;
  /** The same work twice is one job. */
  readonly jobId: (payload: z.infer<P>) => string;
  readonly attemptsMax: number;
  /** First wait; doubles with each attempt. */
  readonly backoffMs: number;
  readonly timeoutMs: number;
  /**
   * How often workers may die with one job before it is a dead letter with WORKER_LOST. Absent: without end, for a queue whose
   * work counts its takeovers itself.
   */
  readonly workersLostMax?: number;
  /** Payload of one firing of a schedule, made from the schedule's own; the same firing always gives the same. */
  readonly firing?: (template: z.infer<P>, firedAtMs: number) => z.infer<P>;
}

const queue = <P extends z.ZodType, R extends z.ZodType>(declaration: QueueDeclaration<P, R>) => declaration;

/** More than a few restarts in a row would cost; far less than a job that takes its workers down with it for ever. */
const WORKERS_LOST_MAX = 10;

/** Bytes of a payload as JSON. Larger things go to the store they belong to; payloads carry ids. */
export const PAYLOAD_MAX_BYTES = 16 * 1024;

export const RolloutRun = queue({
  name: 'rollout.run',
  payload: z.object({ v: z.literal(1), tenant: TenantId, taskId: TaskId, rolloutId: RolloutId }),
  result: z.object({ outcome: z.enum(['succeeded', 'failed', 'cancelled', 'fenced']) }),
  jobId: (p) => p.rolloutId,
  attemptsMax: 5,
  backoffMs: 1_000,
  timeoutMs: 86_400_000,
});

/** The request and its result are kept under the execution id in the execution store. */
export const SandboxExecute = queue({
  name: 'sandbox.execute',
  payload: z.object({ v: z.literal(1), tenant: OwnerTenant, executionId: z.string().min(1).max(200), taskId: TaskId.nullable() }),
  result: z.object({ executionId: z.string() }),
  jobId: (p) => p.executionId,
  attemptsMax: 3,
  backoffMs: 200,
  timeoutMs: 3_600_000,
  workersLostMax: WORKERS_LOST_MAX,
});

/** The record is kept under the write id in the outbox of memory writes until it was applied. */
export const MemoryWriteJob = queue({
  name: 'memory.write',
  payload: z.object({ v: z.literal(1), tenant: TenantId, writeId: z.string().min(1).max(200) }),
  result: z.object({ applied: z.boolean() }),
  jobId: (p) => p.writeId,
  attemptsMax: 12,
  backoffMs: 500,
  timeoutMs: 60_000,
  workersLostMax: WORKERS_LOST_MAX,
});

export const ConsolidationRunJob = queue({
  name: 'consolidation.run',
  payload: z.object({
    v: z.literal(1),
    tenant: TenantId,
    runId: z.string().min(1).max(100),
    agent: AgentId.nullable(),
    days: z.number().int().min(1).max(3_650),
    dryRun: z.boolean(),
  }),
  result: z.object({ runId: z.string() }),
  jobId: (p) => p.runId,
  attemptsMax: 3,
  backoffMs: 2_000,
  timeoutMs: 3_600_000,
  workersLostMax: WORKERS_LOST_MAX,
  firing: (template, firedAtMs) => ({
    ...template,
    runId: `${template.runId}-${new Date(firedAtMs)
      .toISOString()
      .replaceAll(/[^0-9]/g, '')
      .slice(0, 14)}`,
  }),
});

export const SkillVerify = queue({
  name: 'skill.verify',
  payload: z.object({
    v: z.literal(1),
    tenant: OwnerTenant,
    agent: OwnerAgent,
    /** Whose it is; absent: nobody's in particular. */
    user: UserId.optional(),
    name: SkillName,
    version: z.number().int().min(1),
    digest: z.string().length(64),
    /** Raised where the same content is verified again. */
    round: z.number().int().min(1).optional(),
  }),
  result: z.object({ status: z.string() }),
  // No name holds a "~" or "@", so that no two skills share a job.
  jobId: ({ tenant, agent, name, version, digest, round, user }) =>
    [
      tenant,
      agent,
      name,
      version,
      digest.slice(0, 16),
      ...(round === undefined ? [] : [round]),
      ...(user === undefined ? [] : [`@${user}`]),
    ].join('~'),
  attemptsMax: 5,
  backoffMs: 1_000,
  timeoutMs: 600_000,
  workersLostMax: WORKERS_LOST_MAX,
});

/** The job that verifies this version. @param round see `SkillVerify` */
export function verificationOf(
  { scope: { tenant, agent, user }, name, version, digest }: Pick<Skill, 'scope' | 'name' | 'version' | 'digest'>,
  round?: number,
): z.infer<typeof SkillVerify.payload> {
  const key = { tenant, agent, ...(user === null ? {} : { user }), name, version, digest };
  return { v: 1, ...key, ...(round === undefined ? {} : { round }) };
}

/** The skill architect writes a skill that somebody missed. The wish is kept under its id. */
export const SkillRequest = queue({
  name: 'skill.request',
  payload: z.object({ v: z.literal(1), tenant: TenantId, id: z.string().min(1).max(100) }),
  result: z.object({ state: z.enum(['registered', 'failed', 'withdrawn']) }),
  jobId: (p) => `${p.tenant}~${p.id}`,
  attemptsMax: 4,
  backoffMs: 2_000,
  timeoutMs: 900_000,
  workersLostMax: WORKERS_LOST_MAX,
});

/** What was looked at, mended and left by a pass over the whole store. */
const ReconcileReport = z.object({
  checked: z.record(z.string(), z.number()),
  repaired: z.array(z.string()),
  problems: z.array(z.string()),
});

/** What is done to memory as a whole. State and outcome are kept in the upkeep store under the id; payloads hold no names of owners. */
export const MemoryUpkeepJob = queue({
  name: 'memory.upkeep',
  payload: z.discriminatedUnion('work', [
    z.object({ v: z.literal(1), work: z.literal('erase'), tenant: TenantId, id: z.string().min(1).max(100) }),
    z.object({ v: z.literal(1), work: z.literal('reembed'), id: z.string().min(1).max(100) }),
    z.object({ v: z.literal(1), work: z.literal('reconcile'), id: z.string().min(1).max(100) }),
    z.object({
      v: z.literal(1),
      work: z.literal('archive'),
      tenant: TenantId,
      id: z.string().min(1).max(100),
      scoreMax: z.number().min(0).max(1),
      olderThanDays: z.number().int().min(0).max(36_500),
    }),
    /** Skills; what is 0 is not looked at. */
    z.object({
      v: z.literal(1),
      work: z.literal('prune'),
      tenant: TenantId,
      id: z.string().min(1).max(100),
      unusedDays: z.number().int().min(0).max(36_500),
      failingRateMax: z.number().min(0).max(1),
      failingUsesMin: z.number().int().min(1).max(1_000_000),
      supersededDays: z.number().int().min(0).max(36_500),
    }),
  ]),
  result: z.object({ report: ReconcileReport.nullable().default(null), archived: z.number().int().nullable().default(null) }),
  jobId: (p) => `${p.work}.${p.id}`,
  attemptsMax: 12,
  backoffMs: 2_000,
  timeoutMs: 7 * 86_400_000,
  workersLostMax: WORKERS_LOST_MAX,
  firing: (template, firedAtMs) => ({ ...template, id: `${template.id}-${firedAtMs}` }),
});

export const QUEUES = [
  RolloutRun,
  SandboxExecute,
  MemoryWriteJob,
  ConsolidationRunJob,
  SkillVerify,
  SkillRequest,
  MemoryUpkeepJob,
] as const;
