import { z } from 'zod';
import { AgentId, OwnerAgent, OwnerTenant, RolloutId, SkillName, TaskId, TenantId, UserId } from './ids.js';
import type { Skill } from './memory.js';

/** Two versions run side by side during an upgrade, so fields that a newer version added are dropped from payloads and results. */
export interface QueueDeclaration<P extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly payload: P;
  readonly result: R;
  /** The job id: the same work always has the same id, so that it becomes one job. */
  readonly jobId: (payload: z.infer<P>) => string;
  readonly attemptsMax: number;
  /** The first wait between attempts, in ms; it doubles with each attempt. */
  readonly backoffMs: number;
  readonly timeoutMs: number;
  /** The job becomes a dead letter with WORKER_LOST when more workers than this died with it. Absent: no limit. */
  readonly workersLostMax?: number;
  /** The payload for one firing of a schedule, made from the schedule's template. The same firing always gives the same payload. */
  readonly firing?: (template: z.infer<P>, firedAtMs: number) => z.infer<P>;
}

/** Survives a few restarts in a row, but stops a job that kills every worker. */
const WORKERS_LOST_MAX = 10;

const queue = <P extends z.ZodType, R extends z.ZodType>(declaration: QueueDeclaration<P, R>): QueueDeclaration<P, R> => ({
  workersLostMax: WORKERS_LOST_MAX,
  ...declaration,
});

/** Maximum size of a payload as JSON. Larger data belongs in a store, and the payload has its id. */
export const PAYLOAD_MAX_BYTES = 16 * 1024;

export const RolloutRun = queue({
  name: 'rollout.run',
  payload: z.object({ v: z.literal(1), tenant: TenantId, taskId: TaskId, rolloutId: RolloutId }),
  result: z.object({ outcome: z.enum(['succeeded', 'failed', 'cancelled', 'fenced', 'waiting']) }),
  jobId: (p) => p.rolloutId,
  attemptsMax: 5,
  backoffMs: 1_000,
  timeoutMs: 86_400_000,
  // A rollout counts its takeovers itself.
  workersLostMax: Infinity,
});

/** Makes lessons and a skill from the attempts of an ended rollout, which are in its journal. */
export const RolloutLearn = queue({
  name: 'rollout.learn',
  payload: RolloutRun.payload,
  result: z.object({ outcome: z.enum(['done', 'failed', 'over']) }),
  jobId: (p) => p.rolloutId,
  attemptsMax: 3,
  backoffMs: 2_000,
  timeoutMs: 3_600_000,
});

/** The execution store keeps the request and its result under the execution id. */
export const SandboxExecute = queue({
  name: 'sandbox.execute',
  payload: z.object({ v: z.literal(1), tenant: OwnerTenant, executionId: z.string().min(1).max(200), taskId: TaskId.nullable() }),
  result: z.object({ executionId: z.string() }),
  jobId: (p) => p.executionId,
  attemptsMax: 3,
  backoffMs: 200,
  timeoutMs: 3_600_000,
});

/** The outbox keeps the record under the write id until it is applied. */
export const MemoryWriteJob = queue({
  name: 'memory.write',
  payload: z.object({ v: z.literal(1), tenant: TenantId, writeId: z.string().min(1).max(200) }),
  result: z.object({ applied: z.boolean() }),
  jobId: (p) => p.writeId,
  attemptsMax: 12,
  backoffMs: 500,
  timeoutMs: 60_000,
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
    /** The user who owns the skill; absent: no particular user. */
    user: UserId.optional(),
    name: SkillName,
    version: z.number().int().min(1),
    digest: z.string().length(64),
    /** Incremented when the same content is verified again; absent: the first round. */
    round: z.number().int().min(1).optional(),
  }),
  result: z.object({ status: z.string() }),
  // Names contain no "~" or "@", so two skills never share a job id.
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
});

export function verificationOf(
  { scope: { tenant, agent, user }, name, version, digest }: Pick<Skill, 'scope' | 'name' | 'version' | 'digest'>,
  round?: number,
): z.infer<typeof SkillVerify.payload> {
  const key = { tenant, agent, ...(user === null ? {} : { user }), name, version, digest };
  return { v: 1, ...key, ...(round === undefined ? {} : { round }) };
}

/** The skill architect writes a requested skill. The request, called a wish, is stored under `id`. */
export const SkillRequest = queue({
  name: 'skill.request',
  payload: z.object({ v: z.literal(1), tenant: TenantId, id: z.string().min(1).max(100) }),
  result: z.object({ state: z.enum(['registered', 'failed', 'withdrawn']) }),
  jobId: (p) => `${p.tenant}~${p.id}`,
  attemptsMax: 4,
  backoffMs: 2_000,
  timeoutMs: 900_000,
});

/** The result of a pass over the whole store: records checked, repairs made, problems left. */
const ReconcileReport = z.object({
  checked: z.record(z.string(), z.number()),
  repaired: z.array(z.string()),
  problems: z.array(z.string()),
});

const upkeep = { v: z.literal(1), id: z.string().min(1).max(100) };

/** Work on memory as a whole. The upkeep store keeps state and result under `id`. Payloads contain no names of owners. */
export const MemoryUpkeepJob = queue({
  name: 'memory.upkeep',
  payload: z.discriminatedUnion('work', [
    z.object({ ...upkeep, work: z.literal('erase'), tenant: TenantId }),
    z.object({ ...upkeep, work: z.literal('reembed') }),
    z.object({ ...upkeep, work: z.literal('reconcile') }),
    z.object({
      ...upkeep,
      work: z.literal('archive'),
      tenant: TenantId,
      scoreMax: z.number().min(0).max(1),
      olderThanDays: z.number().int().min(0).max(36_500),
    }),
    /** Archives skills; a criterion with the value 0 is off. */
    z.object({
      ...upkeep,
      work: z.literal('prune'),
      tenant: TenantId,
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
  firing: (template, firedAtMs) => ({ ...template, id: `${template.id}-${firedAtMs}` }),
});

/** Compares a tenant's unsettled facts. The facts hold the remaining work, so a lost job loses nothing. */
export const MemorySettleJob = queue({
  name: 'memory.settle',
  /** `at`: when it is due, in ms since 1970. One job settles all facts told until then. */
  payload: z.object({ v: z.literal(1), tenant: TenantId, at: z.number().int() }),
  result: z.object({ modelCalls: z.number().int(), left: z.number().int(), failure: z.string().nullable() }),
  jobId: ({ tenant, at }) => `${tenant}~${at}`,
  attemptsMax: 5,
  backoffMs: 2_000,
  timeoutMs: 1_800_000,
});

export const QUEUES = [
  RolloutRun,
  RolloutLearn,
  SandboxExecute,
  MemoryWriteJob,
  ConsolidationRunJob,
  SkillVerify,
  SkillRequest,
  MemoryUpkeepJob,
  MemorySettleJob,
] as const;
