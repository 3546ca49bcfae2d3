import { z } from 'zod';
import { SkillName, UserId } from './ids.js';
import { Json } from './json.js';

export const SKILL_STATUSES = ['candidate', 'verified', 'pending_review', 'active', 'deprecated', 'archived', 'rejected'] as const;
export const SkillStatus = z.enum(SKILL_STATUSES);
export type SkillStatus = z.infer<typeof SkillStatus>;

/** Who may read a skill: one agent (for one user, if set), all agents of one user, all agents of a tenant, or all tenants. */
export const SKILL_SCOPES = ['agent', 'user', 'tenant', 'global'] as const;
export const SkillScope = z.enum(SKILL_SCOPES);
export type SkillScope = z.infer<typeof SkillScope>;

const Digest = z.string().length(64);
const JsonObject = z.record(z.string(), Json);

/** Category path, from the widest to the narrowest name. */
export const SkillCategory = z
  .string()
  .max(200)
  .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*$/, 'must be names of small letters, digits and "_" with dots between them, such as "text.csv"');

/** One argument of a skill. `type` is in Python's notation, such as "str" or "list[int]"; empty without an annotation. */
export const SkillParameter = z.strictObject({
  name: z.string(),
  type: z.string(),
  description: z.string(),
  required: z.boolean(),
  defaultValue: Json.optional(),
  /** Set if Python doesn't take the argument by name: "position" for `a` in `def f(a, /)`, "rest" for `*rest`. */
  passed: z.enum(['position', 'rest']).optional(),
});
export type SkillParameter = z.infer<typeof SkillParameter>;

/** The arguments and result of a skill, read from its code. */
export const SkillContract = z.strictObject({
  parameters: z.array(SkillParameter),
  /** JSON Schema of the arguments: an object with one property per parameter. */
  inputSchema: JsonObject,
  /** JSON Schema of the result; null without a return annotation. */
  outputSchema: JsonObject.nullable(),
  /** "def parse_csv(text: str, sep: str = ',') -> list[list[str]]"; empty for a program. */
  signature: z.string(),
  /** Docstring of the entry point. Written by somebody else, so prompts treat it as data. */
  docstring: z.string(),
});
export type SkillContract = z.infer<typeof SkillContract>;

/** A skill that another skill calls, pinned to the content with which both were verified. `user` null: no particular user. */
export const SkillDependency = z.strictObject({
  name: SkillName,
  tenant: z.string(),
  agent: z.string(),
  user: UserId.nullable(),
  version: z.number().int().min(1),
  digest: Digest,
});
export type SkillDependency = z.infer<typeof SkillDependency>;

/** Prefix of the rules that find keys and passwords. */
export const SECRET_RULE_PREFIX = 'secret/';

export const SkillFinding = z.strictObject({
  /** The analyser, such as "ruff" or "secretlint". */
  analyser: z.string(),
  rule: z.string(),
  /** A skill with an "error" is never approved automatically. */
  severity: z.enum(['info', 'warning', 'error']),
  /** Line number from 1; null: the whole code. */
  line: z.number().int().nullable(),
  message: z.string(),
});
export type SkillFinding = z.infer<typeof SkillFinding>;

const SkillLikeness = z.strictObject({
  name: SkillName,
  agent: z.string(),
  /** The user who owns the other skill; null: no particular user; absent: not recorded at the time. */
  user: UserId.nullable().optional(),
  version: z.number().int(),
  /** Calibrated similarity of name and description. */
  similarity: z.number(),
  /** `passesTheirs`: this skill passes the other's tests. `theyPass`: the other passes this skill's tests. */
  passesTheirs: z.boolean(),
  theyPass: z.boolean(),
});

/** The result of verifying the content with this digest. `signature`: Ed25519, over the canonical JSON of all other fields. */
export const SkillProof = z.strictObject({
  v: z.literal(1),
  digest: Digest,
  /** ms since 1970 */
  verifiedAt: z.number().int(),
  testsPassed: z.number().int().min(0),
  heldOutPassed: z.number().int().min(0),
  /** Number of generated inputs that the code answered; absent if none were generated, as for a skill that isn't shared. */
  generatedAnswers: z.number().int().min(0).optional(),
  /** Mutants are deliberately broken copies of the code. How many were made, how many the tests noticed, and a phrase for each survivor. */
  mutantsMade: z.number().int().min(0),
  mutantsNoticed: z.number().int().min(0),
  mutantsSurvived: z.array(z.string()),
  findings: z.array(SkillFinding),
  /** Skills whose tests still pass: the version that this version replaces, and the callers of that version. */
  kept: z.array(SkillDependency),
  alike: z.array(SkillLikeness),
  /** 0 to 1, computed by `confidenceOf`. */
  confidence: z.number().min(0).max(1),
  keyId: z.string(),
  /** Base64. */
  signature: z.string(),
});
export type SkillProof = z.infer<typeof SkillProof>;

const SKILL_ORIGINS = ['rollout', 'consolidation', 'tool', 'person', 'import', 'request'] as const;
export const SkillOriginKind = z.enum(SKILL_ORIGINS);
export type SkillOriginKind = z.infer<typeof SkillOriginKind>;

/** Parts of Etude that histories name as actors. A version without a named author shows its origin. */
const SYSTEM_ACTORS: readonly string[] = [...SKILL_ORIGINS, 'verification', 'architect', 'pruning'];

export const isSystemActor = (name: string): boolean => SYSTEM_ACTORS.includes(name.trim().toLowerCase());

/** The name of a JWT's subject in histories. Callers may have chosen the subject, so the name has a form that no key or tenant has. */
export const subjectName = (subject: string) => `subject ${subject}`;

/** Whether API keys can't have this name, because a part of Etude has it, or it looks like the subject of a JWT. */
export const isReservedName = (name: string): boolean => isSystemActor(name) || /^\s*subject\s/i.test(name);

export const SkillChange = z.strictObject({
  /** ms since 1970 */
  at: z.number().int(),
  /** Name of the key or service that made the change, such as "verification". */
  by: z.string(),
  /** null: the version was new. */
  from: SkillStatus.nullable(),
  to: SkillStatus,
  reason: z.string(),
});
export type SkillChange = z.infer<typeof SkillChange>;

/** Usage statistics of a skill, in addition to its `executionCount` and `successRate`. */
export const SkillUsage = z.strictObject({
  /** Times it was shown to a model or agent, or loaded into code. */
  offered: z.number().int().min(0),
  /** Offers since the skill was last used or loaded. Absent if it was never used: all offers count. */
  idle: z.number().int().min(0).optional(),
  /** Times it ran by name or in a task, with any result. */
  used: z.number().int().min(0),
  /** Times it ran and a model still had to do the work afterwards. */
  fellBack: z.number().int().min(0),
  /** ms since 1970; loading it into an agent's code also counts here. */
  lastUsedAt: z.number().int().nullable(),
  /** The latest failures, newest first; inputs are cut. */
  failures: z.array(z.strictObject({ at: z.number().int(), input: z.string(), error: z.string() })),
  /** Digests of the latest inputs and outputs. They reveal when the same input gives another output. */
  outputs: z.array(z.strictObject({ input: z.string(), output: z.string() })),
  nondeterministic: z.boolean(),
});
export type SkillUsage = z.infer<typeof SkillUsage>;

/** "name==version", as sandbox templates list the packages of their image. */
export const SkillPackage = z
  .string()
  .max(120)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!_-]+$/, 'must be a package with its exact version, such as "numpy==2.3.1"');

export const APPROVAL_MODES = ['automatic', 'review', 'threshold'] as const;
/** `automatic`: verified skills become active at once. `review`: they wait. `threshold`: they wait if confidence is below the setting. */
const ApprovalMode = z.enum(APPROVAL_MODES);

/** Settings of an agent. Callers rely on the defaults. */
export const ProceduralMemorySettings = z.strictObject({
  enabled: z.boolean().default(false),
  autoRegisterSkills: z.boolean().default(false),
  skillRegistrationConfidenceThreshold: z.number().min(0).max(1).default(0.9),
  /** 0: unlimited. */
  maxSkills: z.number().int().min(0).max(1_000_000).default(0),
  skillSearchThreshold: z.number().min(0).max(1).default(0.8),
  preferSkills: z.boolean().default(true),
  approvalMode: ApprovalMode.default('review'),
  /** Whether a model reads conversations for facts, and compares new facts with the facts near them. */
  settleFacts: z.boolean().default(true),
});
export type ProceduralMemorySettings = z.infer<typeof ProceduralMemorySettings>;

/** A skill that was asked for and doesn't exist yet. */
export const WantedSkill = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  user: z.string().nullable(),
  skill: SkillName,
  description: z.string(),
  /** Arguments that the caller would have passed. */
  example: JsonObject.nullable(),
  state: z.enum(['waiting', 'writing', 'registered', 'failed', 'withdrawn']),
  reason: z.string(),
  priority: z.number().int().min(0).max(9),
  /** Number of requests for the skill. */
  asked: z.number().int().min(1),
  /** Name of the skill that was registered for the request; null until then. */
  registered: SkillName.nullable(),
  scripted: z.boolean(),
  createdAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type WantedSkill = z.infer<typeof WantedSkill>;
