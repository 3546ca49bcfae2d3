import { z } from 'zod';
import { AgentId, SkillName, TenantId, UserId } from './ids.js';
import { Verdict } from './task.js';

/** Who owns a record. The tenant comes from authentication; search is always inside it. */
export const Scope = z.strictObject({ tenant: TenantId, agent: AgentId, user: UserId.nullable().default(null) });
export type Scope = z.infer<typeof Scope>;

export const RecalledItem = z.strictObject({
  id: z.string(),
  layer: z.enum(['episodic', 'semantic', 'procedural']),
  kind: z.string(),
  title: z.string(),
  text: z.string(),
  score: z.number(),
  similarity: z.number(),
});
export type RecalledItem = z.infer<typeof RecalledItem>;

/** What one attempt leaves behind, kept losslessly. */
export const Transition = z.strictObject({
  id: z.string(),
  scope: Scope,
  taskId: z.string(),
  rolloutId: z.string(),
  attempt: z.number().int(),
  prompt: z.string(),
  fingerprint: z.string(),
  critique: z.string().nullable(),
  draft: z.string().nullable(),
  recalled: z.array(RecalledItem),
  thought: z.string(),
  code: z.string(),
  feedback: z.string(),
  verdict: Verdict,
  reason: z.string(),
  casesPassed: z.number().int(),
  casesTotal: z.number().int(),
  skill: z.string().nullable(),
  model: z.string().nullable(),
  scripted: z.boolean(),
  inputTokens: z.number().int(),
  outputTokens: z.number().int(),
  costUsd: z.number(),
  createdAt: z.number().int(),
});
export type Transition = z.infer<typeof Transition>;

/** A test of a skill, made from an evaluator's cases; never shown to a model. */
export const SkillTest = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('io'),
    stdin: z.string(),
    expectedStdout: z.string(),
    comparison: z.enum(['whitespace', 'exact', 'numeric']),
    tolerance: z.number(),
  }),
  z.strictObject({
    kind: z.literal('call'),
    args: z.array(z.json()),
    kwargs: z.record(z.string(), z.json()),
    expected: z.json(),
    tolerance: z.number(),
  }),
  z.strictObject({ kind: z.literal('python'), setup: z.string(), tests: z.string() }),
]);
export type SkillTest = z.infer<typeof SkillTest>;

/** A finished rollout with its summary and reflection; its transitions are found by `rolloutId`. */
export const Episode = z.strictObject({
  id: z.string(),
  scope: Scope,
  taskId: z.string(),
  rolloutId: z.string(),
  prompt: z.string(),
  fingerprint: z.string(),
  evaluatorKind: z.string(),
  entryPoint: z.string().nullable(),
  /** Code of the accepted attempt; null where none was accepted. */
  code: z.string().nullable(),
  /** The evaluator's cases, where `code` was accepted: what a skill made of it can be verified by. */
  tests: z.array(SkillTest).optional(),
  summary: z.string(),
  reflection: z.string().nullable(),
  success: z.boolean(),
  importance: z.number().min(0).max(1),
  skillsUsed: z.array(z.string()),
  attempts: z.number().int(),
  model: z.string().nullable(),
  scripted: z.boolean(),
  createdAt: z.number().int(),
});
export type Episode = z.infer<typeof Episode>;

export const Fact = z.strictObject({
  /** Made from tenant, agent and normalised text, so that the same fact is one record. */
  id: z.string(),
  scope: Scope,
  text: z.string().trim().min(1).max(4_000),
  category: z.string().default('general'),
  confidence: z.number().min(0).max(1).default(1),
  source: z.string().default('experience'),
  /** Episodes that support it. */
  episodes: z.array(z.string()).default([]),
  support: z.number().int().default(1),
  accessCount: z.number().int().default(0),
  createdAt: z.number().int(),
});
export type Fact = z.infer<typeof Fact>;

export const SKILL_STATUSES = ['candidate', 'verified', 'pending_review', 'active', 'deprecated', 'archived', 'rejected'] as const;
export const SkillStatus = z.enum(SKILL_STATUSES);
export type SkillStatus = z.infer<typeof SkillStatus>;

export const Skill = z.strictObject({
  name: SkillName,
  version: z.number().int().min(1),
  scope: Scope,
  kind: z.enum(['function', 'snippet', 'procedure']),
  description: z.string(),
  code: z.string(),
  /** null: a program that reads stdin and writes stdout. */
  entryPoint: z.string().nullable(),
  parameters: z
    .array(
      z.strictObject({
        name: z.string(),
        type: z.string(),
        description: z.string(),
        required: z.boolean(),
        defaultValue: z.json().optional(),
      }),
    )
    .default([]),
  tests: z.array(SkillTest),
  tags: z.array(z.string()).default([]),
  /** Task texts this skill has solved; its retrieval cues beside the description. */
  cues: z.array(z.string()),
  /** Fingerprints of tasks that it solved. */
  fingerprints: z.array(z.string()),
  status: SkillStatus,
  statusReason: z.string().default(''),
  evidence: z.array(z.string()).default([]),
  digest: z.string(),
  sources: z.array(z.string()),
  model: z.string().nullable(),
  scripted: z.boolean(),
  executionCount: z.number().int().default(0),
  successRate: z.number().min(0).max(1).default(1),
  createdAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type Skill = z.infer<typeof Skill>;

/** Everything that is written to memory goes through `memory.write` as one of these, under an id made from its content. */
export const MemoryWrite = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('transition'), transition: Transition }),
  z.strictObject({ kind: z.literal('episode'), episode: Episode }),
  /** A candidate; stored, then sent to verification. */
  z.strictObject({ kind: z.literal('skill'), skill: Skill }),
  z.strictObject({
    kind: z.literal('skill_use'),
    scope: Scope,
    name: SkillName,
    version: z.number().int(),
    success: z.boolean(),
    fingerprint: z.string(),
    cue: z.string(),
    at: z.number().int(),
  }),
]);
export type MemoryWrite = z.infer<typeof MemoryWrite>;
