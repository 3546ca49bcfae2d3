import { z } from 'zod';
import { TenantId } from './ids.js';

/** The proof of an erasure: what was removed, and that nothing was found afterwards. Holds counts and digests, no erased data. */
export const ErasureReceipt = z.object({
  id: z.string(),
  tenant: TenantId,
  /** SHA-256 of the name, hexadecimal; null: not limited to one. */
  agentDigest: z.string().nullable(),
  userDigest: z.string().nullable(),
  state: z.enum(['running', 'succeeded', 'failed']),
  /** Records removed, by place: "memory.episodic.transition", "queue.outbox", "queue.tasks", … */
  removed: z.record(z.string(), z.number().int()),
  /** Records found afterwards, by place; all 0 when it succeeded. */
  left: z.record(z.string(), z.number().int()),
  /** What was done beyond removing, and what the databases may still hold for a while, one sentence each. */
  notes: z.array(z.string()),
  error: z.string().nullable(),
  requestedAt: z.number().int(),
  finishedAt: z.number().int().nullable(),
});
export type ErasureReceipt = z.infer<typeof ErasureReceipt>;

/** Moving all vectors to another model; there is one of them at a time. */
export const Reembedding = z.object({
  /** Empty where there was none yet. */
  id: z.string(),
  model: z.string(),
  /** Of a model whose length is not known by its name. */
  dimension: z.number().int().min(1).max(65_536).nullable(),
  /** Model whose vectors are dropped once all records have those of `model`. */
  dropModel: z.string().nullable(),
  /** `stopped`: goes on where it was when started again. `ready`: no record is without a vector. */
  state: z.enum(['idle', 'running', 'stopped', 'ready', 'failed']),
  /** Records. */
  done: z.number().int(),
  total: z.number().int().nullable(),
  /** While `running`: the reason for a delay, such as a server that is away; the move is tried again. */
  error: z.string().nullable(),
  /** ms since 1970 */
  startedAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type Reembedding = z.infer<typeof Reembedding>;

/** One pass over an agent's recent episodes, as callers see it. */
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
  plan: z.array(z.string()).default([]),
  error: z.string().nullable().default(null),
  scripted: z.boolean().default(false),
});
export type ConsolidationRecord = z.infer<typeof ConsolidationRecord>;
