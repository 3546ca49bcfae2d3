import type { Turn } from '@etude/contracts/conversation';
import type { Episode, Fact, FoundItem, ItemShows, MemoryWrite, RecalledItem, Scope, Skill, Transition } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import { EtudeError } from '@etude/contracts/errors';

/** The owner of a skill. Versions are counted per owner and user, so a version number reveals nothing about other users' skills. */
export interface SkillOwner {
  readonly tenant: string;
  /** Name of the agent, or "@user" or "@tenant" for a shared skill. */
  readonly agent: string;
  /** The user whose skills are meant. null means skills without a user, and absent means all skills. */
  readonly user?: string | null;
}

/** One version of a skill, with the digest of the content that the caller saw. An absent user means that the skill has no user. */
export interface SkillKey extends SkillOwner {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
}

export interface SkillMove {
  readonly key: SkillKey;
  readonly to: SkillStatus;
  /** The move is made only if the skill has one of these statuses. If absent, only the status table limits the move. */
  readonly from?: readonly SkillStatus[];
  /** Who made the decision: the name of an API key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** Time of the decision, in ms since 1970. */
  readonly at: number;
  readonly evidence?: readonly string[];
  /** The results of verification, which a move to `verified` needs. If `proof` is null, the stored proof is removed. */
  readonly contract?: SkillContract;
  readonly proof?: SkillProof | null;
  /** Name of the skill to use instead of this one. null removes the stored name. */
  readonly replacedBy?: string | null;
  /** A skill that does the same as this one. Its members, cues and fingerprints are added to this skill, so that searches by them find it. */
  readonly absorbs?: Skill;
}

export type CountedUse = Extract<MemoryWrite, { kind: 'skill_use' }>;

/** A skill version that was shown to a model or an agent, or loaded for it. */
export interface SkillOffer extends Omit<SkillKey, 'digest'> {
  /** Time at which the skill was loaded for an agent's code, in ms since 1970. Absent if the skill was only shown. */
  readonly loadedAt?: number;
}

/**
 * The versions of skills, and the only way to change their status.
 *
 * A skill is stored as a candidate and moves only as the table in `skill-life.ts` allows. A verified or active version has a proof for
 * exactly its content. For this check, the digest is computed from code, contract, tests and dependencies, never read from the record. At
 * most one version of a name, owner and user is active.
 * @throws EtudeError NOT_FOUND; ABORTED if status or content changed since the caller read it, or another version is active;
 * FAILED_PRECONDITION if the proof is missing
 * Not part of this port: finding skills, verification, signatures, permissions.
 */
export interface SkillRegistry {
  /** The versions of a skill, newest first. Of equal numbers, the version without a user is first. `status` selects one status. */
  versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]>;
  /**
   * Every version of a tenant's skills, or of one agent's skills, beginning with the name `fromName`. They are read page by page, ordered by name,
   * agent, user and version. Skills without a user come first. A user sees their own skills and skills without a user.
   */
  every(
    owner: Pick<SkillOwner, 'tenant'> & { readonly agent: string | null; readonly user?: string | null },
    statuses?: readonly SkillStatus[],
    fromName?: string,
  ): AsyncIterable<Skill>;
  /** Counts the owner's skill names. A name whose versions are all rejected or archived is not counted. */
  countNames(owner: SkillOwner): Promise<number>;
  /** Makes the moves in order. All moves must belong to one tenant. A repeat after a crash makes only the missing moves. */
  move(moves: readonly SkillMove[]): Promise<readonly Skill[]>;
  /** The versions that call this skill and are active or wait for review. With `all`, versions of every status that call it. */
  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>, options?: { readonly all?: boolean }): Promise<readonly Skill[]>;
  /** Adds one offer to the count of each version, and stores the latest load time. A lost count is not an error. */
  countOffers(offers: readonly SkillOffer[]): Promise<void>;
}

export type SkillVersions = Pick<SkillRegistry, 'versions'>;

export interface SearchQuery {
  readonly text: string;
  readonly limit: number;
  /** The kinds of records to find, such as "fact" and "chunk". Default: all kinds of the layer. */
  readonly kinds?: readonly string[];
  /** The category of facts to find. Default: any. */
  readonly category?: string;
  /** Hits with a lower calibrated similarity are left out. Default: 0. */
  readonly similarityMin?: number;
  readonly explain?: boolean;
}

export interface MemoryHit extends RecalledItem {
  readonly agent: string;
  /** Absent if the memory has no user. */
  readonly user?: string;
  /** Whether the scripted model wrote the record. Absent if this is unknown. */
  readonly scripted?: boolean;
  readonly createdAt: number;
  readonly sources: readonly string[];
  readonly explanation?: Readonly<Record<string, number>>;
  /** Explains the score in words and numbers. Only set if the query has `explain`. */
  readonly why?: readonly string[];
  /** For a turn of a conversation: its speaker, time and position. Its text is the `text` of the hit. */
  readonly turn?: Turn;
  /** The turns before and after the found turn, in order, with the beginnings of their texts. */
  readonly before?: readonly Turn[];
  readonly after?: readonly Turn[];
}

/** Memories that a search may find. `agent: null` means all agents. With a `user`, only this user's memories and those without a user are found. */
export interface ReadScope {
  readonly tenant: string;
  readonly agent: string | null;
  readonly user?: string | null;
  /**
   * Owners of the same tenant that are read together with `agent`, such as "@user" and "@tenant". A shared owner holds memories of all users, so
   * agent and user must be given. @throws EtudeError TENANT_MISSING without agent or user
   */
  readonly also?: readonly string[];
}

/** Reads transitions and episodes. Not part of this port: storing them, which the outbox does. @throws EtudeError TENANT_MISSING */
export interface EpisodicMemory {
  /** Finds transitions by prompt and draft, and episodes by context, actions, skills, outcomes and reflection. */
  search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]>;
  /** All episodes made at `sinceMs` (ms since 1970) or later, read page by page. They are ordered by id, so a repeat has the same order. */
  every(scope: ReadScope, sinceMs: number): AsyncIterable<Episode>;
  /** All attempts of a rollout, in order and with their full text. */
  transitions(scope: ReadScope, rolloutId: string): Promise<readonly Transition[]>;
}

/** Names a part of a unit and its owner. If the owner is erased, the note that this part was applied is erased too. */
export interface CoveredUnit {
  readonly unitId: string;
  readonly scope: Scope;
}

/** Stores and finds facts. Storing a known fact reinforces it. Not part of this port: deciding what is a fact. */
export interface SemanticMemory {
  /** Stores all facts of the unit, or none. A repeat of `unitId` changes nothing. @param covered parts of the unit that count as applied too */
  applyFacts(
    tenant: string,
    unitId: string,
    facts: readonly Fact[],
    covered?: readonly CoveredUnit[],
  ): Promise<{ added: number; reinforced: number }>;
  appliedAmong(tenant: string, unitIds: readonly string[]): Promise<ReadonlySet<string>>;
  search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]>;
  /** The current fact of exactly this owner with this category and subject, or null. */
  about(owner: Scope, category: string, subject: string): Promise<Fact | null>;
}

export type SkillWords = 'ignored' | 'edited' | 'kept';

export interface StoreSkillOptions {
  /** Who stores the skill: the name of an API key or of a service. Default: the skill's origin. */
  readonly by?: string;
  /** The number of the version that must still be the newest. If absent, any version may be the newest. */
  readonly baseVersion?: number;
  /** Whether a reviewer stores the skill, or the skill copies an approved one. Then untrusted marks of earlier versions are not carried over. */
  readonly isReviewed?: boolean;
  /**
   * What happens if the content is known, but the skill's words are new: description, tags, category, examples, held-out tests. `ignored`, the
   * default, makes no new version, because a model words the same skill differently each time. `edited` makes a new version unless all versions with
   * this content are rejected, deprecated or archived. `kept` always makes a new version.
   */
  readonly words?: SkillWords;
  /** The most skill names that the owner may have. Rejected and archived skills don't count. 0 or absent means no limit. */
  readonly namesMax?: number;
  /** The reason to archive a new version at once. This version doesn't count towards `namesMax`. An existing version is not changed. */
  readonly setAside?: string;
}

export interface FoundSkill {
  readonly skill: Skill;
  readonly similarity: number;
  readonly score: number;
  readonly explanation?: Readonly<Record<string, number>>;
  readonly why?: readonly string[];
}

/** Stores skills with their versions and status. Not part of this port: verification, approval. */
export interface ProceduralMemory extends SkillRegistry {
  /**
   * Stores a new version as a candidate. Its given status, proof and history are ignored. If the same agent, name and user have a version with this
   * content, that version gets the sources of both skills (`knownVersion`). Code that is marked untrusted anywhere in the tenant is marked here too.
   * @returns the stored version
   * @throws EtudeError ABORTED if the newest version is not `baseVersion`; FAILED_PRECONDITION for a new name beyond `namesMax`, even if several new
   *   names are stored at the same time
   */
  store(skill: Skill, options?: StoreSkillOptions): Promise<Skill>;
  /** The given version, or the newest, or null. The reader's own skill is preferred, then a skill without a user, then any user's skill. */
  get(scope: ReadScope, name: string, version?: number): Promise<Skill | null>;
  /** Finds active skills, the best first. */
  search(scope: ReadScope, query: SearchQuery): Promise<readonly FoundSkill[]>;
  /** The active skills that solved a task with this fingerprint. */
  byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]>;
  /** Adds a use to the counts and the success rate (alpha 0.1). A success also adds its cue and fingerprint. Returns false for a repeated `useId`. */
  applyUse(useId: string, use: CountedUse): Promise<boolean>;
}

/** Reads how rollouts ended, separately with an item shown and with it withheld. Not part of this port: counting, which the write `shows` does. */
export interface ShowCounters {
  /** The counts in the order of `items`. null for an item that was never shown or withheld. */
  counters(tenant: string, items: readonly FoundItem[]): Promise<ReadonlyArray<Pick<ItemShows, 'shown' | 'withheld'> | null>>;
}

/** Takes writes to memory. `put` returns when the write is durable. A repeated id changes nothing. Ids are unique across tenants. */
export interface MemoryOutbox {
  put(tenant: string, writeId: string, write: MemoryWrite): Promise<void>;
}

/** The owner of a write, and the time at which its content was made, in ms since 1970. */
export function writtenIn(write: MemoryWrite): { readonly scope: Scope; readonly createdAt: number } {
  if (write.kind === 'skill_use' || write.kind === 'shows') return { scope: write.scope, createdAt: write.at };
  if (write.kind === 'skill') return write.skill;
  if (write.kind === 'fact') return write.fact;
  return write.kind === 'episode' ? write.episode : write.transition;
}

/** Refuses an invalid scope. A caller may have got around the types. @throws EtudeError TENANT_MISSING */
export function requireScope(scope: ReadScope): ReadScope {
  const { tenant, agent, user, also } = (scope ?? {}) as Partial<ReadScope>;
  if (typeof tenant !== 'string' || tenant.trim() === '') {
    throw new EtudeError('TENANT_MISSING', 'The memory scope has no tenant. Pass the authenticated tenant.');
  }
  if (typeof agent !== 'string' && agent !== null) {
    throw new EtudeError('TENANT_MISSING', 'The memory scope has no agent. Pass a name, or null for every agent of the tenant.');
  }
  const areNames = Array.isArray(also) && also.every((name) => typeof name === 'string' && name !== '');
  if (also !== undefined && !(areNames && typeof agent === 'string' && typeof user === 'string')) {
    throw new EtudeError(
      'TENANT_MISSING',
      'The memory scope has shared owners in "also", but no agent or no user. Pass the agent and the user for whom memory is read.',
    );
  }
  return scope;
}

/** Refuses to write a record of another tenant. @throws EtudeError PERMISSION_DENIED */
export function requireOwn(tenant: string, scope: Scope): void {
  if (scope.tenant === tenant) return;
  const message = `A record of tenant ${JSON.stringify(scope.tenant)} can't be written as tenant ${JSON.stringify(tenant)}. Write it under its own tenant.`;
  throw new EtudeError('PERMISSION_DENIED', message);
}

/** The scope in which a write is found: the whole tenant, because ids are unique across its agents. */
export function wholeTenant(scope: Scope | undefined): ReadScope {
  return { tenant: scope?.tenant ?? '', agent: null };
}
