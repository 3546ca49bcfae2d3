import { z } from 'zod';
import { OwnerAgent, TenantId, UserId } from './ids.js';

/**
 * One record with all its parts, named like a source: "facts/{id}"; "episodes/{rollout}" with its attempts, summary and reflection;
 * "documents/{id}" with its chunks; "skills/{name}@{version}" for a procedure in words.
 */
export const NamedRecord = z.strictObject({ name: z.string().min(3), agent: OwnerAgent, user: UserId.nullable() });
export type NamedRecord = z.infer<typeof NamedRecord>;

/** The receipt of an erasure: what was removed, and a check that nothing is left. It holds counts and digests, no erased data. */
export const ErasureReceipt = z.object({
  id: z.string(),
  tenant: TenantId,
  /** Hex SHA-256 of the agent's or user's name; null: the erasure isn't limited to one. */
  agentDigest: z.string().nullable(),
  userDigest: z.string().nullable(),
  state: z.enum(['running', 'succeeded', 'failed']),
  /** Count of removed records by place: "memory.episodic.transition", "queue.outbox", "queue.tasks", … */
  removed: z.record(z.string(), z.number().int()),
  /** Count of records found after the erasure, by place; all 0 on success. */
  left: z.record(z.string(), z.number().int()),
  /** One sentence for each other action, and for data that the databases may keep for a while. */
  notes: z.array(z.string()),
  /** Names of the records that rested on a deleted record, and of its other versions. They stay. */
  supported: z.array(z.string()).default([]),
  error: z.string().nullable(),
  requestedAt: z.number().int(),
  finishedAt: z.number().int().nullable(),
});
export type ErasureReceipt = z.infer<typeof ErasureReceipt>;

/** Moves all vectors to another embedding model. At most one runs at a time. */
export const Reembedding = z.object({
  /** Empty before the first re-embedding. */
  id: z.string(),
  model: z.string(),
  /** Length of the vectors; null if the model's name determines the length. */
  dimension: z.number().int().min(1).max(65_536).nullable(),
  /** Model whose vectors are dropped once all records have vectors of `model`; null: none. */
  dropModel: z.string().nullable(),
  /** `stopped`: continues from there when started again. `ready`: every record has a vector. */
  state: z.enum(['idle', 'running', 'stopped', 'ready', 'failed']),
  /** Count of records. */
  done: z.number().int(),
  total: z.number().int().nullable(),
  /** While `running`: why it is delayed, such as an unreachable server. It retries. */
  error: z.string().nullable(),
  /** ms since 1970 */
  startedAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type Reembedding = z.infer<typeof Reembedding>;

/** One consolidation run over an agent's recent episodes, as callers see it. */
export const ConsolidationRecord = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string().nullable(),
  days: z.number().int(),
  dryRun: z.boolean(),
  state: z.enum(['queued', 'running', 'done', 'failed']),
  createdAt: z.number().int(),
  endedAt: z.number().int().nullable().default(null),
  episodesRead: z.number().int().default(0),
  groups: z.number().int().default(0),
  factsAdded: z.number().int().default(0),
  factsReinforced: z.number().int().default(0),
  skillsProposed: z.number().int().default(0),
  skillsActivated: z.number().int().default(0),
  skillsRejected: z.number().int().default(0),
  modelCalls: z.number().int().default(0),
  modelFailures: z.number().int().default(0),
  inputTokens: z.number().int().default(0),
  outputTokens: z.number().int().default(0),
  costUsd: z.number().default(0),
  plan: z.array(z.string()).default([]),
  error: z.string().nullable().default(null),
  scripted: z.boolean().default(false),
});
export type ConsolidationRecord = z.infer<typeof ConsolidationRecord>;
