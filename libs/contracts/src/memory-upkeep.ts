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
  /** Hex SHA-256 of the agent's or user's name; null: the erasure isn't limited to one agent or user. */
  agentDigest: z.string().nullable(),
  userDigest: z.string().nullable(),
  state: z.enum(['running', 'succeeded', 'failed']),
  /** Count of removed records by place: "memory.episodic.transition", "queue.outbox", "queue.tasks", … */
  removed: z.record(z.string(), z.number().int()),
  /** Count of records found after the erasure, by place; all 0 on success. */
  left: z.record(z.string(), z.number().int()),
  /** One sentence for each other action, and for data that the databases may keep for a while. */
  notes: z.array(z.string()),
  /** Names of records that stay: records made from the deleted record, and its other versions. */
  supported: z.array(z.string()).default([]),
  error: z.string().nullable(),
  requestedAt: z.number().int(),
  finishedAt: z.number().int().nullable(),
});
export type ErasureReceipt = z.infer<typeof ErasureReceipt>;

/** A move of all vectors to another embedding model. At most one runs at a time. */
export const Reembedding = z.object({
  /** Empty before the first re-embedding. */
  id: z.string(),
  model: z.string(),
  /** Length of the vectors; null if the model's name determines the length. */
  dimension: z.number().int().min(1).max(65_536).nullable(),
  /** Model whose vectors are dropped once all records have vectors of `model`; null: none. */
  dropModel: z.string().nullable(),
  /** `stopped`: a new start continues after the last vector. `ready`: every record has a vector. */
  state: z.enum(['idle', 'running', 'stopped', 'ready', 'failed']),
  /** Count of records. */
  done: z.number().int(),
  total: z.number().int().nullable(),
  /** While `running`: why the move is delayed, such as an unreachable server, which is tried again. */
  error: z.string().nullable(),
  /** ms since 1970 */
  startedAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type Reembedding = z.infer<typeof Reembedding>;

const Count = z.number().int().default(0);

export const ConsolidationCounts = z.object({
  episodesRead: Count,
  groups: Count,
  factsAdded: Count,
  factsReinforced: Count,
  skillsProposed: Count,
  modelCalls: Count,
  modelFailures: Count,
  inputTokens: Count,
  outputTokens: Count,
  costUsd: z.number().default(0),
  scripted: z.boolean().default(false),
});
export type ConsolidationCounts = z.infer<typeof ConsolidationCounts>;

/** The part of a consolidation run that concerns one agent. */
export const ConsolidatedAgent = ConsolidationCounts.extend({
  agent: z.string(),
  /**
   * `planned`: nothing is applied yet, or the run is dry. `gated`: the plan would have made recall worse. `left`: the budget was spent
   * before the agent's turn. `undone`: the agent's changes were taken back.
   */
  state: z.enum(['planned', 'applied', 'unchanged', 'gated', 'failed', 'left', 'undone']),
  /** Why the state is `gated`, `failed` or `left`. */
  reason: z.string().default(''),
  /** One line for each planned or applied change, with its sources. */
  plan: z.array(z.string()).default([]),
  skills: z.array(z.object({ user: z.string().nullable(), name: z.string(), digest: z.string() })).default([]),
});
export type ConsolidatedAgent = z.infer<typeof ConsolidatedAgent>;

/** One consolidation run, as callers see it. Its counts are sums over all agents. */
export const ConsolidationRecord = ConsolidationCounts.extend({
  id: z.string(),
  tenant: z.string(),
  /** null: every agent, one by one. */
  agent: z.string().nullable(),
  days: z.number().int(),
  dryRun: z.boolean(),
  /** Plans are applied even if recall becomes worse. */
  force: z.boolean().default(false),
  state: z.enum(['queued', 'running', 'done', 'failed']),
  createdAt: z.number().int(),
  endedAt: z.number().int().nullable().default(null),
  skillsActivated: Count,
  skillsRejected: Count,
  /** Notes on the whole run. */
  plan: z.array(z.string()).default([]),
  error: z.string().nullable().default(null),
});
export type ConsolidationRecord = z.infer<typeof ConsolidationRecord>;
