// One file for the shapes of all memory records, since they refer to each other. It has no logic.
import { z } from 'zod';
import { OwnerAgent, OwnerTenant, SkillName, UserId } from './ids.js';
import { Json, JsonObject } from './json.js';
import {
  SkillCategory,
  SkillChange,
  SkillContract,
  SkillDependency,
  SkillOriginKind,
  SkillPackage,
  SkillParameter,
  SkillProof,
  SkillStatus,
  SkillUsage,
} from './skill-proof.js';
import { SandboxFile } from './sandbox.js';
import { Verdict } from './task.js';
import { VisibleText } from './visible-text.js';

/** The owner of a record. The tenant comes from authentication. Searches never leave the tenant. */
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
   * The origins of the record: for a fact, ids of its supporting episodes, and "facts/{id}" for a fact that a caller stored. For every kind,
   * also the untrusted records that its author had seen, such as "documents/{id}".
   */
  sources: z.array(z.string()).readonly().optional(),
});
export type RecalledItem = z.infer<typeof RecalledItem>;

/** The lossless record of one attempt. When read, fields that a newer version added are dropped. */
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
  /** Skills that the model's code imports, as "name@version". */
  imported: z.array(z.string()).optional(),
  model: z.string().nullable(),
  scripted: z.boolean(),
  inputTokens: z.number().int(),
  outputTokens: z.number().int(),
  costUsd: z.number(),
  /** Records that were shown in this or an earlier attempt, such as "documents/{id}". */
  touched: z.array(z.string()).optional(),
  createdAt: z.number().int(),
});
export type Transition = z.infer<typeof Transition>;

/** A test of a skill, made from an evaluator's cases. Models never see it. */
export const SkillTest = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('io'),
    stdin: z.string().default(''),
    expectedStdout: z.string(),
    comparison: z.enum(['whitespace', 'exact', 'numeric']).default('whitespace'),
    tolerance: z.number().default(0),
  }),
  z.strictObject({
    kind: z.literal('call'),
    args: z.array(Json).default([]),
    kwargs: z.record(z.string(), Json).default({}),
    expected: Json,
    tolerance: z.number().default(0),
  }),
  z.strictObject({ kind: z.literal('python'), setup: z.string().default(''), tests: z.string() }),
]);
export type SkillTest = z.infer<typeof SkillTest>;

/** An experience that an outside agent reports. */
export const Experience = z.strictObject({
  context: z.array(z.string().max(1_000_000)).min(1).max(1_000),
  actions: z.array(z.string().max(1_000_000)).max(10_000).default([]),
  /** `type: "action_error"` marks an error. A success has outcomes, fewer than 30% of them errors. */
  outcomes: z.array(JsonObject).max(10_000).default([]),
});
export type Experience = z.infer<typeof Experience>;

/** A finished rollout with its summary and reflection. Its transitions have the same `rolloutId`. */
export const Episode = z.object({
  id: z.string(),
  scope: Scope,
  taskId: z.string(),
  rolloutId: z.string(),
  prompt: z.string(),
  fingerprint: z.string(),
  evaluatorKind: z.string(),
  entryPoint: z.string().nullable(),
  /** Code of the accepted attempt; null if none was accepted. */
  code: z.string().nullable(),
  /** The evaluator's cases, if `code` was accepted. A skill made from this episode is verified with them. */
  tests: z.array(SkillTest).optional(),
  summary: z.string(),
  reflection: z.string().nullable(),
  success: z.boolean(),
  importance: z.number().min(0).max(1),
  skillsUsed: z.array(z.string()),
  /** Records that the author had seen, and untrusted records from which those were made, such as "documents/{id}" and "episodes/{id}". */
  touched: z.array(z.string()).optional(),
  /** The complete report of an outside agent; absent if a rollout made the episode. */
  experience: Experience.optional(),
  attempts: z.number().int(),
  model: z.string().nullable(),
  scripted: z.boolean(),
  createdAt: z.number().int(),
});
export type Episode = z.infer<typeof Episode>;

/** A decision about a fact and an older fact of the same owner. */
export const FactDecision = z.object({
  /** Id of the older fact. */
  other: z.string(),
  /** `same`: both say the same. `replaces`: the fact ended the older fact. `differs`: both are true. */
  verdict: z.enum(['same', 'replaces', 'differs']),
  /** One sentence of the judge. */
  reason: z.string(),
  /** Name of the model, or of the caller who undid an earlier decision. */
  by: z.string(),
  /** ms since 1970 */
  at: z.number().int(),
  /** After `same`: the fields that the newer fact got from the older fact, for an undo. */
  gained: z.object({ support: z.number().int(), episodes: z.array(z.string()) }).optional(),
});
export type FactDecision = z.infer<typeof FactDecision>;

export const Fact = z.object({
  /** Derived from tenant, agent, user and normalised text, so that the same fact is stored once. */
  id: z.string(),
  scope: Scope,
  text: VisibleText.max(4_000),
  category: z.string().default('general'),
  confidence: z.number().min(0).max(1).default(1),
  source: z.string().default('experience'),
  /** Ids of the episodes that support the fact. */
  episodes: z.array(z.string()).default([]),
  /** Untrusted records that were visible when the fact was learned, such as "documents/{id}". */
  touched: z.array(z.string()).optional(),
  support: z.number().int().default(1),
  accessCount: z.number().int().default(0),
  createdAt: z.number().int(),
  /** The topic, such as "favourite editor". Among facts with the same subject, category, agent and user, only the newest is true. */
  subject: VisibleText.max(200).optional(),
  /** ms since 1970; absent: valid since its creation. */
  validFrom: z.number().int().optional(),
  /** End of validity, in ms since 1970; absent: still valid. */
  validTo: z.number().int().optional(),
  supersededBy: z.string().optional(),
  updatedAt: z.number().int().optional(),
  /** For a finding about a file: the beginning of the sha256 of its content. */
  digest: z.string().optional(),
  /** Ids of similar facts of the same owner that are still to be compared with this fact, nearest first; absent: none. */
  unsettled: z.array(z.string()).optional(),
  /** Older texts that say the same, by which search finds this fact too, newest first. For a finding: its text, with names split into words. */
  wordings: z.array(z.object({ id: z.string(), text: z.string() })).optional(),
  /** Older facts that this fact replaced, newest first. Search finds this fact by their texts too, since they name its subject. */
  outdated: z.array(z.object({ id: z.string(), text: z.string() })).optional(),
  /** Decisions about this fact and older facts, oldest first. */
  decisions: z.array(FactDecision).optional(),
});
export type Fact = z.infer<typeof Fact>;

/** An imported text, without its chunks. */
export const DocumentRecord = z.strictObject({
  /** Derived from the scope and `name`, so that new content under the same name replaces the old. */
  id: z.string(),
  scope: Scope,
  /** The importer's name for the document, such as a path or URL. */
  name: z.string().min(1).max(1_000),
  title: z.string(),
  mediaType: z.string(),
  /** Hex SHA-256 of the bytes. */
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
  /** Title of the document, searched together with the text. Set when the chunk is stored. */
  title: z.string().optional(),
  headings: z.array(z.string()),
  page: z.number().int().nullable(),
  text: z.string(),
  createdAt: z.number().int(),
});
export type DocumentChunk = z.infer<typeof DocumentChunk>;

/** Code that a skill of the same owner replaces. `fixed`: the arguments with which the skill does the same as the code. */
export const SkillMember = z.strictObject({
  /** The skill with this code, deprecated when the replacing skill becomes active; absent: the code is from an episode. */
  skill: z.strictObject({ name: SkillName, version: z.number().int().min(1) }).optional(),
  /** Fingerprints of the tasks that the code has solved. */
  fingerprints: z.array(z.string()),
  fixed: z.record(z.string(), Json),
});
export type SkillMember = z.infer<typeof SkillMember>;

export const Skill = z.object({
  name: SkillName,
  version: z.number().int().min(1),
  scope: Scope,
  kind: z.enum(['function', 'snippet', 'procedure']),
  description: z.string(),
  code: z.string(),
  /** Name of the function to call; null: a program that reads stdin and writes stdout. */
  entryPoint: z.string().nullable(),
  /** As declared by the author. `contract` has the parameters read from the code. */
  parameters: z.array(SkillParameter).default([]),
  tests: z.array(SkillTest),
  tags: z.array(z.string()).default([]),
  /** Texts of tasks that this skill has solved. Retrieval matches them in addition to the description. */
  cues: z.array(z.string()),
  /** Fingerprints of tasks that this skill has solved. */
  fingerprints: z.array(z.string()),
  status: SkillStatus,
  statusReason: z.string().default(''),
  evidence: z.array(z.string()).default([]),
  digest: z.string(),
  sources: z.array(z.string()),
  model: z.string().nullable(),
  scripted: z.boolean(),
  /** Successful uses. */
  executionCount: z.number().int().default(0),
  successRate: z.number().min(0).max(1).default(1),
  createdAt: z.number().int(),
  updatedAt: z.number().int(),
  displayName: z.string().max(200).optional(),
  category: SkillCategory.optional(),
  examplePrompts: z.array(z.string()).optional(),
  /** Skills that the code calls. Part of the digest. */
  dependencies: z.array(SkillDependency).optional(),
  /** Part of the digest. */
  packages: z.array(SkillPackage).optional(),
  /** Hidden tests that only verification runs. New versions inherit them. */
  heldOut: z.array(SkillTest).optional(),
  contract: SkillContract.optional(),
  proof: SkillProof.optional(),
  /** Every change of status, oldest first. */
  history: z.array(SkillChange).optional(),
  origin: SkillOriginKind.optional(),
  /** Whether some tests come from hidden cases of other tasks or of an earlier version, whatever `origin` says. */
  hiddenTests: z.boolean().optional(),
  /** Reasons why the skill is never approved automatically: its sources aren't trusted. */
  untrusted: z.array(z.string()).optional(),
  replacedBy: SkillName.optional(),
  /** The skills from which this skill was generalised, or with which it was merged. Not part of the digest. */
  members: z.array(SkillMember).optional(),
  usage: SkillUsage.optional(),
  /** From the Agent Skills format: files other than the code, and fields that Etude doesn't know. */
  files: z.array(SandboxFile).optional(),
  metadata: JsonObject.optional(),
});
export type Skill = z.infer<typeof Skill>;

/** A memory that recall found for a rollout, with its owner within the tenant. */
export const FoundItem = RecalledItem.pick({ layer: true, kind: true, id: true }).extend({
  owner: z.strictObject({ agent: OwnerAgent, user: UserId.nullable() }),
});
export type FoundItem = z.infer<typeof FoundItem>;

/** Whether the rollout was shown the item; if not, it was withheld by lot. */
export const ItemShow = FoundItem.extend({ shown: z.boolean() });
export type ItemShow = z.infer<typeof ItemShow>;

const Count = z.number().int().min(0);
/** Results of the rollouts with an item, or without it. */
const ShowSide = z
  .strictObject({
    n: Count,
    /** Rollouts whose first attempt was right. */
    right: Count,
    /** Sum of the model tokens of each rollout, and sum of the squares of these numbers. */
    tokens: z.number().min(0),
    tokensSquared: z.number().min(0),
  })
  .refine(({ n, right }) => right <= n, 'has more right attempts than rollouts');
export type ShowSide = z.infer<typeof ShowSide>;

export const ItemShows = z.strictObject({
  scope: Scope,
  kind: z.string(),
  id: z.string().max(500),
  shown: ShowSide,
  withheld: ShowSide,
  /** When and why upkeep archived the item. It isn't archived again once somebody has restored it. */
  archived: z.strictObject({ at: Count, reason: z.string() }).optional(),
  createdAt: z.number().int(),
});
export type ItemShows = z.infer<typeof ItemShows>;

/** The jobs of `memory.write`. Each has an id derived from its content. */
export const MemoryWrite = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('transition'), transition: Transition }),
  z.object({ kind: z.literal('episode'), episode: Episode }),
  z.object({ kind: z.literal('fact'), fact: Fact }),
  /** A candidate: stored, then sent to verification. A procedure in words that consolidation learned becomes active at once. */
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
    /** The owner of the skill, if not the caller's own agent; absent `user`: no particular user. */
    owner: z.object({ tenant: OwnerTenant, agent: OwnerAgent, user: UserId.optional() }).optional(),
    inputDigest: z.string().optional(),
    outputDigest: z.string().optional(),
    failure: z.object({ input: z.string().max(4_000), error: z.string().max(4_000) }).optional(),
    /** Whether a model had to do the work afterwards. */
    fellBack: z.boolean().optional(),
  }),
  /** The result of a rollout, with the items that it was shown, and the items that were withheld. */
  z.object({
    kind: z.literal('shows'),
    scope: Scope,
    shows: z.array(ItemShow),
    /** Whether the rollout's first attempt was right. */
    right: z.boolean(),
    tokens: z.number().int().min(0),
    at: z.number().int(),
  }),
]);
export type MemoryWrite = z.infer<typeof MemoryWrite>;
