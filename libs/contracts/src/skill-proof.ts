import { z } from 'zod';
import { SkillName, UserId } from './ids.js';
import { Json } from './json.js';

export const SKILL_STATUSES = ['candidate', 'verified', 'pending_review', 'active', 'deprecated', 'archived', 'rejected'] as const;
export const SkillStatus = z.enum(SKILL_STATUSES);
export type SkillStatus = z.infer<typeof SkillStatus>;

/** What may be read of a skill. `agent` is one agent's, of one user where it has one. */
export const SKILL_SCOPES = ['agent', 'user', 'tenant', 'global'] as const;
export const SkillScope = z.enum(SKILL_SCOPES);
export type SkillScope = z.infer<typeof SkillScope>;

const Digest = z.string().length(64);
const JsonObject = z.record(z.string(), Json);

/** Path of categories, from the widest to the narrowest. */
export const SkillCategory = z
  .string()
  .max(200)
  .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*$/, 'must be names of small letters, digits and "_" with dots between them, such as "text.csv"');

/** One argument of a skill. `type` as Python writes it, such as "str" or "list[int]"; empty where the code says nothing. */
export const SkillParameter = z.strictObject({
  name: z.string(),
  type: z.string(),
  description: z.string(),
  required: z.boolean(),
  defaultValue: Json.optional(),
  /** Set where Python takes the argument without its name: by its position ("a" of `def f(a, /)`), or in a list ("rest" of `*rest`). */
  passed: z.enum(['position', 'rest']).optional(),
});
export type SkillParameter = z.infer<typeof SkillParameter>;

/** What a skill takes and gives, as its code says. */
export const SkillContract = z.strictObject({
  parameters: z.array(SkillParameter),
  /** JSON Schema of the arguments, an object with a property for each parameter. */
  inputSchema: JsonObject,
  /** JSON Schema of the result; null where the code says nothing of it. */
  outputSchema: JsonObject.nullable(),
  /** "def parse_csv(text: str, sep: str = ',') -> list[list[str]]"; empty for a program. */
  signature: z.string(),
  /** Docstring of the entry point. Somebody's words: data in every prompt. */
  docstring: z.string(),
});
export type SkillContract = z.infer<typeof SkillContract>;

/**
 * Another skill, exactly as it was when both were verified together. `agent` and `user`: whose it is; null: nobody's in particular.
 */
export const SkillDependency = z.strictObject({
  name: SkillName,
  tenant: z.string(),
  agent: z.string(),
  user: UserId.nullable(),
  version: z.number().int().min(1),
  digest: Digest,
});
export type SkillDependency = z.infer<typeof SkillDependency>;

/** Begins the rule of every finding that is a key or a password. */
export const SECRET_RULE_PREFIX = 'secret/';

export const SkillFinding = z.strictObject({
  /** Which analyser, such as "ruff" or "secretlint". */
  analyser: z.string(),
  /** Its own name for the rule. */
  rule: z.string(),
  /** An error is never approved automatically. */
  severity: z.enum(['info', 'warning', 'error']),
  /** From 1; null: the whole code. */
  line: z.number().int().nullable(),
  message: z.string(),
});
export type SkillFinding = z.infer<typeof SkillFinding>;

/** A skill that does much the same. */
export const SkillLikeness = z.strictObject({
  name: SkillName,
  agent: z.string(),
  /** Whose it is; absent: not written down then. */
  user: UserId.nullable().optional(),
  version: z.number().int(),
  /** Calibrated, of name and description. */
  similarity: z.number(),
  /** Whether this one passes the other's tests, and the other this one's. */
  passesTheirs: z.boolean(),
  theyPass: z.boolean(),
});
export type SkillLikeness = z.infer<typeof SkillLikeness>;

/**
 * What verification found, for exactly the content with this digest. Signed by the installation: `signature` is Ed25519 over the
 * canonical JSON of all other fields.
 */
export const SkillProof = z.strictObject({
  v: z.literal(1),
  digest: Digest,
  /** ms since 1970 */
  verifiedAt: z.number().int(),
  testsPassed: z.number().int().min(0),
  heldOutPassed: z.number().int().min(0),
  /** Mutants: copies that were broken in one place; those that the tests noticed, and in a phrase each those that they did not. */
  mutantsMade: z.number().int().min(0),
  mutantsNoticed: z.number().int().min(0),
  mutantsSurvived: z.array(z.string()),
  findings: z.array(SkillFinding),
  /** Skills whose tests still pass: the version that it replaces, and those that depend on it. */
  kept: z.array(SkillDependency),
  alike: z.array(SkillLikeness),
  /** 0 to 1; see `confidenceOf`. */
  confidence: z.number().min(0).max(1),
  keyId: z.string(),
  /** Base64. */
  signature: z.string(),
});
export type SkillProof = z.infer<typeof SkillProof>;

const SKILL_ORIGINS = ['rollout', 'consolidation', 'tool', 'person', 'import', 'request'] as const;
export const SkillOriginKind = z.enum(SKILL_ORIGINS);
export type SkillOriginKind = z.infer<typeof SkillOriginKind>;

/** Parts of Etude that stand in histories as those who did something; of a skill that nobody is named for, its origin. Nobody's key is called so. */
const SYSTEM_ACTORS: readonly string[] = [...SKILL_ORIGINS, 'verification', 'architect', 'pruning'];

/** Whether somebody of this name could be taken for a part of Etude, in whichever letters it is written. */
export function isSystemActor(name: string): boolean {
  const plain = name
    .normalize('NFKC')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase();
  return SYSTEM_ACTORS.includes(plain);
}

export const SkillChange = z.strictObject({
  /** ms since 1970 */
  at: z.number().int(),
  /** Name of a key, or of a service such as "verification". */
  by: z.string(),
  /** null: it was stored. */
  from: SkillStatus.nullable(),
  to: SkillStatus,
  reason: z.string(),
});
export type SkillChange = z.infer<typeof SkillChange>;

/** How a skill does, beside its successful executions and their rate. */
export const SkillUsage = z.strictObject({
  /** Shown to a model or an agent, or loaded into its code. */
  offered: z.number().int().min(0),
  /** Run by name or in a task, whatever came of it. */
  used: z.number().int().min(0),
  /** Run, and a model had to do the work afterwards. */
  fellBack: z.number().int().min(0),
  /** ms since 1970; loads into code that an agent runs move it, too. */
  lastUsedAt: z.number().int().nullable(),
  /** The last ones, newest first; inputs cut. */
  failures: z.array(z.strictObject({ at: z.number().int(), input: z.string(), error: z.string() })),
  /** Digests of the latest inputs and outputs, to notice when the same input gives another output. */
  outputs: z.array(z.strictObject({ input: z.string(), output: z.string() })),
  nondeterministic: z.boolean(),
});
export type SkillUsage = z.infer<typeof SkillUsage>;

/** A file of the Agent Skills format beside the code. */
export const SkillFile = z.strictObject({ path: z.string().min(1).max(512), contentBase64: z.base64() });
export type SkillFile = z.infer<typeof SkillFile>;

/** "name==version", as a sandbox template lists what its image has. */
export const SkillPackage = z
  .string()
  .max(120)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!_-]+$/, 'must be a package with its exact version, such as "numpy==2.3.1"');

export const APPROVAL_MODES = ['automatic', 'review', 'threshold'] as const;
/** `automatic`: verified skills are active at once. `review`: they wait. `threshold`: they wait below the settings' confidence. */
export const ApprovalMode = z.enum(APPROVAL_MODES);
export type ApprovalMode = z.infer<typeof ApprovalMode>;

/** An agent's settings; the defaults are those that callers rely on. */
export const ProceduralMemorySettings = z.strictObject({
  enabled: z.boolean().default(false),
  autoRegisterSkills: z.boolean().default(false),
  skillRegistrationConfidenceThreshold: z.number().min(0).max(1).default(0.9),
  /** 0: any number. */
  maxSkills: z.number().int().min(0).max(1_000_000).default(0),
  skillSearchThreshold: z.number().min(0).max(1).default(0.8),
  preferSkills: z.boolean().default(true),
  approvalMode: ApprovalMode.default('review'),
});
export type ProceduralMemorySettings = z.infer<typeof ProceduralMemorySettings>;

/** A skill that somebody missed. */
export const WantedSkill = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string(),
  user: z.string().nullable(),
  skill: SkillName,
  description: z.string(),
  /** Arguments that it would have been called with. */
  example: JsonObject.nullable(),
  state: z.enum(['waiting', 'writing', 'registered', 'failed', 'withdrawn']),
  reason: z.string(),
  priority: z.number().int().min(0).max(9),
  /** How often. */
  asked: z.number().int().min(1),
  /** Name of the skill that came of it. */
  registered: SkillName.nullable(),
  scripted: z.boolean(),
  createdAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type WantedSkill = z.infer<typeof WantedSkill>;
