import { z } from 'zod';
import { OwnerAgent, OwnerTenant, SkillName, UserId } from './ids.js';
import { Json, JsonObject } from './json.js';
import {
  SkillCategory,
  SkillChange,
  SkillContract,
  SkillDependency,
  SkillFile,
  SkillOriginKind,
  SkillPackage,
  SkillParameter,
  SkillProof,
  SkillStatus,
  SkillUsage,
} from './skill-proof.js';
import { Verdict } from './task.js';
import { VisibleText } from './visible-text.js';

/** Who owns a record. The tenant comes from authentication; search is always inside it. */
export const Scope = z.strictObject({ tenant: OwnerTenant, agent: OwnerAgent, user: UserId.nullable().default(null) });
export type Scope = z.infer<typeof Scope>;

export const RecalledItem = z.object({
  id: z.string(),
  layer: z.enum(['episodic', 'semantic', 'procedural']),
  kind: z.string(),
  title: z.string(),
  text: z.string(),
  score: z.number(),
  similarity: z.number(),
  /**
   * The origins of the record. For a fact: ids of the episodes that support it, and "facts/{id}" where somebody told it. For every kind
   * also the untrusted records that its author had seen, in the form of a skill's sources.
   */
  sources: z.array(z.string()).readonly().optional(),
});
export type RecalledItem = z.infer<typeof RecalledItem>;

/** What one attempt leaves behind, kept losslessly. Stored records take fields that a newer version added, and leave them out. */
export const Transition = z.object({
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
  /** Records that were shown in this attempt or one before it, in the form of a skill's sources. */
  touched: z.array(z.string()).optional(),
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
    args: z.array(Json),
    kwargs: z.record(z.string(), Json),
    expected: Json,
    tolerance: z.number(),
  }),
  z.strictObject({ kind: z.literal('python'), setup: z.string(), tests: z.string() }),
]);
export type SkillTest = z.infer<typeof SkillTest>;

/** What an outside agent lived through. */
export const Experience = z.strictObject({
  context: z.array(z.string().max(1_000_000)).min(1).max(1_000),
  actions: z.array(z.string().max(1_000_000)).max(10_000).default([]),
  /** `type: "action_error"` marks an error. A success has outcomes, of which fewer than 30% are errors. */
  outcomes: z.array(JsonObject).max(10_000).default([]),
});
export type Experience = z.infer<typeof Experience>;

/** A finished rollout with its summary and reflection; its transitions are found by `rolloutId`. */
export const Episode = z.object({
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
  /** What it was made in sight of, as a skill names its sources: "documents/…", "episodes/…"; with what of those is not trusted. */
  touched: z.array(z.string()).optional(),
  /** What an outside agent told, whole; absent where a rollout made the episode. */
  experience: Experience.optional(),
  attempts: z.number().int(),
  model: z.string().nullable(),
  scripted: z.boolean(),
  createdAt: z.number().int(),
});
export type Episode = z.infer<typeof Episode>;

export const Fact = z.object({
  /** Made from tenant, agent and normalised text, so that the same fact is one record. */
  id: z.string(),
  scope: Scope,
  text: VisibleText.max(4_000),
  category: z.string().default('general'),
  confidence: z.number().min(0).max(1).default(1),
  source: z.string().default('experience'),
  /** Episodes that support it. */
  episodes: z.array(z.string()).default([]),
  /** Untrusted records that were in sight when it was learned, in the form of a skill's sources. */
  touched: z.array(z.string()).optional(),
  support: z.number().int().default(1),
  accessCount: z.number().int().default(0),
  createdAt: z.number().int(),
  /**
   * What the fact is about, such as "favourite editor"; of facts with one subject (and agent and user) only the newest is true.
   * Absent: told from the text where it can be.
   */
  subject: VisibleText.max(200).optional(),
  /** ms since 1970; absent: since it was created. */
  validFrom: z.number().int().optional(),
  /** Since when it is no longer true; absent: it still is. */
  validTo: z.number().int().optional(),
  /** Id of the fact that took its place. */
  supersededBy: z.string().optional(),
  /** Other wordings of it that were told. */
  wordings: z.array(z.string()).max(20).optional(),
  updatedAt: z.number().int().optional(),
});
export type Fact = z.infer<typeof Fact>;

/** A text that was imported, without its chunks. */
export const DocumentRecord = z.strictObject({
  /** Made from the scope and the content's digest, or from the scope and `name` where a newer content replaces an older one. */
  id: z.string(),
  scope: Scope,
  /** What the importer calls it, such as a path or URL. */
  name: z.string().min(1).max(1_000),
  title: z.string(),
  mediaType: z.string(),
  /** SHA-256 of the bytes, hexadecimal. */
  digest: z.string(),
  bytes: z.number().int(),
  chunks: z.number().int(),
  createdAt: z.number().int(),
});
export type DocumentRecord = z.infer<typeof DocumentRecord>;

export const DocumentChunk = z.strictObject({
  id: z.string(),
  scope: Scope,
  documentId: z.string(),
  index: z.number().int().min(0),
  /** Of its document; it is searched with the text. Set where the chunk is stored. */
  title: z.string().optional(),
  headings: z.array(z.string()),
  page: z.number().int().nullable(),
  text: z.string(),
  createdAt: z.number().int(),
});
export type DocumentChunk = z.infer<typeof DocumentChunk>;

export const Skill = z.object({
  name: SkillName,
  version: z.number().int().min(1),
  scope: Scope,
  kind: z.enum(['function', 'snippet', 'procedure']),
  description: z.string(),
  code: z.string(),
  /** null: a program that reads stdin and writes stdout. */
  entryPoint: z.string().nullable(),
  /** As the author declared them; what the code says is in `contract`. */
  parameters: z.array(SkillParameter).default([]),
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
  /** Uses that succeeded. */
  executionCount: z.number().int().default(0),
  successRate: z.number().min(0).max(1).default(1),
  createdAt: z.number().int(),
  updatedAt: z.number().int(),
  displayName: z.string().max(200).optional(),
  category: SkillCategory.optional(),
  examplePrompts: z.array(z.string()).optional(),
  /** Skills that its code calls; part of the digest. */
  dependencies: z.array(SkillDependency).optional(),
  /** Part of the digest. */
  packages: z.array(SkillPackage).optional(),
  /** Tests that verification runs and nobody is shown; they go from version to version. */
  heldOut: z.array(SkillTest).optional(),
  /** Read from the code by verification. */
  contract: SkillContract.optional(),
  proof: SkillProof.optional(),
  /** Every change of status, oldest first. */
  history: z.array(SkillChange).optional(),
  origin: SkillOriginKind.optional(),
  /** Some of its tests were made from cases of tasks elsewhere, or for a version before it, whatever its origin. */
  hiddenTests: z.boolean().optional(),
  /** Why it is never approved automatically, one reason each: what it was learned from is not trusted. */
  untrusted: z.array(z.string()).optional(),
  /** Name of the skill that is used in its place. */
  replacedBy: SkillName.optional(),
  usage: SkillUsage.optional(),
  /** Of the Agent Skills format: files beside the code, and fields that Etude has no own place for. */
  files: z.array(SkillFile).optional(),
  metadata: JsonObject.optional(),
});
export type Skill = z.infer<typeof Skill>;

/** Everything that is written to memory goes through `memory.write` as one of these, under an id made from its content. */
export const MemoryWrite = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('transition'), transition: Transition }),
  z.object({ kind: z.literal('episode'), episode: Episode }),
  /** A candidate; stored, then sent to verification. */
  z.object({ kind: z.literal('skill'), skill: Skill }),
  z.object({
    kind: z.literal('skill_use'),
    scope: Scope,
    name: SkillName,
    version: z.number().int(),
    success: z.boolean(),
    fingerprint: z.string(),
    cue: z.string(),
    at: z.number().int(),
    /** Whose the skill is, where it is not the user's own agent's. Without a user it is nobody's in particular. */
    owner: z.object({ tenant: OwnerTenant, agent: OwnerAgent, user: UserId.optional() }).optional(),
    /** Digests of the arguments and of the result. */
    inputDigest: z.string().optional(),
    outputDigest: z.string().optional(),
    /** Of a use that failed. */
    failure: z.object({ input: z.string().max(4_000), error: z.string().max(4_000) }).optional(),
    /** A model had to do the work afterwards. */
    fellBack: z.boolean().optional(),
  }),
]);
export type MemoryWrite = z.infer<typeof MemoryWrite>;
