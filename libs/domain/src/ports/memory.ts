import type { Turn } from '@etude/contracts/conversation';
import type { Episode, Fact, FoundItem, ItemShows, MemoryWrite, RecalledItem, Scope, Skill, Transition } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import { EtudeError } from '@etude/contracts/errors';

/** The owner of a skill. Versions are counted per owner and user, so that a version number tells nothing about another user's skills. */
export interface SkillOwner {
  readonly tenant: string;
  /** An agent; "@user" or "@tenant" for a shared skill. */
  readonly agent: string;
  /** Only this user's skills; null: only skills without a user. Absent: skills of every user and without one. */
  readonly user?: string | null;
}

/** One version of one owner's skill, with the digest of the content that the caller saw. Absent user: the skill has no user. */
export interface SkillKey extends SkillOwner {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
}

export interface SkillMove {
  readonly key: SkillKey;
  readonly to: SkillStatus;
  /** Statuses from which the move is allowed. Absent: any that the status table allows. */
  readonly from?: readonly SkillStatus[];
  /** Who asked for the move: the name of a key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** ms since 1970 */
  readonly at: number;
  /** Lines that are added to the skill's evidence. */
  readonly evidence?: readonly string[];
  /** Results of verification; needed for `verified`. A null proof removes the stored one, because it is no longer believed. */
  readonly contract?: SkillContract;
  readonly proof?: SkillProof | null;
  /** Name of the skill to use instead; null removes it. */
  readonly replacedBy?: string | null;
  /** A skill that does the same: its members, cues and fingerprints are added, so that they lead to this one. */
  readonly absorbs?: Skill;
}

export type CountedUse = Extract<MemoryWrite, { kind: 'skill_use' }>;

/** A skill version that was shown to a model or an agent, or loaded for it. */
export interface SkillOffer extends Omit<SkillKey, 'digest'> {
  /** When it was loaded into code that an agent will run, in ms since 1970. Absent: it was only shown. */
  readonly loadedAt?: number;
}

/**
 * The versions of skills, and the only way to change their status.
 *
 * A skill is stored as a candidate and moves only as the table in `skill-life.ts` allows. A verified or active version has a proof for
 * exactly its content: the digest is computed anew from code, contract, tests and dependencies, never taken from the record. Of the
 * versions of one name, owner and user at most one is active.
 * @throws EtudeError NOT_FOUND; ABORTED if status or content changed since the caller read it, or another version is active;
 * FAILED_PRECONDITION if the proof is missing
 * Not in it: finding skills, verification, signatures, permissions.
 */
export interface SkillRegistry {
  /** Newest first. Of equal version numbers, the one without a user comes first. `status` keeps only versions with that status. */
  versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]>;
  /**
   * Every version of a tenant's skills, or of one agent's, ordered by name, agent, user and version; skills without a user come first. A
   * user sees their own and those without one. Read page by page, from `fromName` on.
   */
  every(
    owner: Pick<SkillOwner, 'tenant'> & { readonly agent: string | null; readonly user?: string | null },
    statuses?: readonly SkillStatus[],
    fromName?: string,
  ): AsyncIterable<Skill>;
  /** Number of the owner's skill names that have a version neither rejected nor archived. */
  countNames(owner: SkillOwner): Promise<number>;
  /** Makes the moves in order; all belong to one tenant. A repeat after a crash skips the moves already made and makes the others. */
  move(moves: readonly SkillMove[]): Promise<readonly Skill[]>;
  /** Versions that call this skill of the owner: the active ones and those waiting for review. With `all`, versions of every status. */
  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>, options?: { readonly all?: boolean }): Promise<readonly Skill[]>;
  /** Adds one offer to the count of each version, and stores the latest load time. Losing a count is not an error. */
  countOffers(offers: readonly SkillOffer[]): Promise<void>;
}

export type SkillVersions = Pick<SkillRegistry, 'versions'>;

export interface SearchQuery {
  readonly text: string;
  readonly limit: number;
  /** Kinds of records of the layer, such as "fact" and "chunk"; default all. */
  readonly kinds?: readonly string[];
  /** Of facts; default any. */
  readonly category?: string;
  /** Hits with a lower calibrated similarity are left out; default 0. */
  readonly similarityMin?: number;
  readonly explain?: boolean;
}

export interface MemoryHit extends RecalledItem {
  readonly agent: string;
  /** Absent: the memory belongs to no particular user. */
  readonly user?: string;
  /** Whether the scripted model wrote it; absent if the record doesn't say. */
  readonly scripted?: boolean;
  readonly createdAt: number;
  readonly sources: readonly string[];
  readonly explanation?: Readonly<Record<string, number>>;
  /** How the score came about, in words and numbers; only with `explain`. */
  readonly why?: readonly string[];
  /** For a turn of a conversation: its speaker, time and place. The hit has its text. */
  readonly turn?: Turn;
  /** The turns around it in order, with the beginnings of their texts. */
  readonly before?: readonly Turn[];
  readonly after?: readonly Turn[];
}

/** `agent: null` searches every agent of the tenant. A `user` sees their own memories and those without a user; null or absent sees all. */
export interface ReadScope {
  readonly tenant: string;
  readonly agent: string | null;
  readonly user?: string | null;
  /**
   * Owners of the same tenant that are read together with `agent`, such as "@user" and "@tenant". Needs a named agent and user, since a
   * shared owner holds memories of every user. @throws EtudeError TENANT_MISSING without them
   */
  readonly also?: readonly string[];
}

/** Reads transitions and the episodes that they make up. Not in it: storing, which a write of the outbox does. @throws EtudeError TENANT_MISSING */
export interface EpisodicMemory {
  /** Finds transitions by prompt and draft, episodes by context, actions, skills, outcomes and reflection. */
  search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]>;
  /** All episodes made at `sinceMs` (ms since 1970) or later, ordered by id so that a repeat gets the same order. Read page by page. */
  every(scope: ReadScope, sinceMs: number): AsyncIterable<Episode>;
  /** All attempts of a rollout in order, with their full text. */
  transitions(scope: ReadScope, rolloutId: string): Promise<readonly Transition[]>;
}

/** A part of a unit, with its owner: erasing the owner forgets that it was applied. */
export interface CoveredUnit {
  readonly unitId: string;
  readonly scope: Scope;
}

/** Stores facts. Storing a known fact reinforces it. Not in it: deciding what is a fact. */
export interface SemanticMemory {
  /** Stores all facts of the unit or none. Applying the same `unitId` again changes nothing. @param covered noted as applied with it */
  applyFacts(
    tenant: string,
    unitId: string,
    facts: readonly Fact[],
    covered?: readonly CoveredUnit[],
  ): Promise<{ added: number; reinforced: number }>;
  /** The units that were applied, or covered by an applied one. */
  appliedAmong(tenant: string, unitIds: readonly string[]): Promise<ReadonlySet<string>>;
  search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]>;
  /** The current fact of exactly this owner with this category and subject; null if there is none. */
  about(owner: Scope, category: string, subject: string): Promise<Fact | null>;
}

export type SkillWords = 'ignored' | 'edited' | 'kept';

export interface StoreSkillOptions {
  /** Who stores the skill: the name of a key or of a service. Default: the skill's origin. */
  readonly by?: string;
  /** The newest version that the author has seen. Absent: the author accepts any newest version. */
  readonly baseVersion?: number;
  /** A reviewer stores the skill, or it copies one that a reviewer approved. Untrusted marks of earlier versions are not carried over. */
  readonly isReviewed?: boolean;
  /**
   * What happens if the content is known, but its words (description, tags, category, examples, held-out tests) differ. `ignored`, the
   * default: no new version, since a model words the same skill differently each time. `edited`: a new version, unless all with this
   * content are rejected, deprecated or archived. `kept`: always a new version.
   */
  readonly words?: SkillWords;
  /** How many skill names the owner may have, not counting rejected and archived skills; 0 or absent: no limit. */
  readonly namesMax?: number;
  /**
   * Why a new version is archived at once. It then doesn't count towards `namesMax`, and becomes active only if somebody restores it. A
   * version that has this content already is not changed.
   */
  readonly setAside?: string;
}

export interface FoundSkill {
  readonly skill: Skill;
  readonly similarity: number;
  readonly score: number;
  readonly explanation?: Readonly<Record<string, number>>;
  readonly why?: readonly string[];
}

/** Stores skills with their versions and status. Not in it: verification, approval. */
export interface ProceduralMemory extends SkillRegistry {
  /**
   * Stores a new version as a candidate, whatever status, proof and history it has. If the same (agent, name, user) has this content
   * already, that version gets the sources of both (`knownVersion`). Code that is marked untrusted anywhere in the tenant is marked here.
   * @returns the stored version
   * @throws EtudeError ABORTED if the newest version is not `baseVersion`; FAILED_PRECONDITION for a new name beyond `namesMax`, also if
   * several are stored at once
   */
  store(skill: Skill, options?: StoreSkillOptions): Promise<Skill>;
  /** The version asked for, or the newest. The reader's own skill comes before one without a user, then any user's. null: there is none. */
  get(scope: ReadScope, name: string, version?: number): Promise<Skill | null>;
  /** Active skills only, best first. */
  search(scope: ReadScope, query: SearchQuery): Promise<readonly FoundSkill[]>;
  /** Active skills that solved a task with this fingerprint. */
  byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]>;
  /** Adds a use to counts and success rate (alpha 0.1); a success also adds its cue and fingerprint. False for a repeat of `useId`. */
  applyUse(useId: string, use: CountedUse): Promise<boolean>;
}

/** Reads how rollouts ended with and without an item. Not in it: counting, which a write of kind `shows` does. */
export interface ShowCounters {
  /** In the order of `items`; null: it was never shown or withheld. */
  counters(tenant: string, items: readonly FoundItem[]): Promise<ReadonlyArray<Pick<ItemShows, 'shown' | 'withheld'> | null>>;
}

/**
 * The domain hands its writes to memory over here. `put` returns once the write is durable; putting the same id again changes nothing. Ids
 * are unique across tenants. The consolidation worker applies the writes in the background.
 */
export interface MemoryOutbox {
  put(tenant: string, writeId: string, write: MemoryWrite): Promise<void>;
}

/** The owner of a write, and when its content was made, ms since 1970. */
export function writtenIn(write: MemoryWrite): { readonly scope: Scope; readonly createdAt: number } {
  if (write.kind === 'skill_use' || write.kind === 'shows') return { scope: write.scope, createdAt: write.at };
  if (write.kind === 'skill') return write.skill;
  if (write.kind === 'fact') return write.fact;
  return write.kind === 'episode' ? write.episode : write.transition;
}

/** Refuses an invalid scope, also one that the types rule out. @throws EtudeError TENANT_MISSING */
export function requireScope(scope: ReadScope): ReadScope {
  const { tenant, agent, user, also } = (scope ?? {}) as Partial<ReadScope>;
  if (typeof tenant !== 'string' || tenant.trim() === '') {
    throw new EtudeError('TENANT_MISSING', 'the memory scope has no tenant; pass the authenticated tenant');
  }
  if (typeof agent !== 'string' && agent !== null) {
    throw new EtudeError('TENANT_MISSING', 'the memory scope has no agent; pass a name, or null for every agent of the tenant');
  }
  const areNames = Array.isArray(also) && also.every((name) => typeof name === 'string' && name !== '');
  if (also !== undefined && !(areNames && typeof agent === 'string' && typeof user === 'string')) {
    throw new EtudeError('TENANT_MISSING', 'the memory scope has several owners but no reader; pass the agent and the user that read them');
  }
  return scope;
}

/** @throws EtudeError PERMISSION_DENIED for a record that belongs to another tenant */
export function requireOwn(tenant: string, scope: Scope): void {
  if (scope.tenant === tenant) return;
  const message = `a record of tenant ${JSON.stringify(scope.tenant)} can't be written as tenant ${JSON.stringify(tenant)}; write the record under its own tenant`;
  throw new EtudeError('PERMISSION_DENIED', message);
}

/** The whole tenant as the scope of a write, since ids are unique per tenant, across its agents. */
export function wholeTenant(scope: Scope | undefined): ReadScope {
  return { tenant: scope?.tenant ?? '', agent: null };
}
