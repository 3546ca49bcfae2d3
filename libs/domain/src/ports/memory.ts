import type { Episode, Fact, MemoryWrite, RecalledItem, Skill, Transition } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillRegistry } from './skill-registry.js';

export interface SearchQuery {
  readonly text: string;
  readonly limit: number;
  /** Calibrated similarity below which nothing is returned; default 0. */
  readonly similarityMin?: number;
  readonly explain?: boolean;
}

export interface MemoryHit extends RecalledItem {
  readonly agent: string;
  /** Absent: nobody's in particular. */
  readonly user?: string;
  /** Written by the scripted model, as far as the record knows. */
  readonly scripted?: boolean;
  readonly createdAt: number;
  readonly sources: readonly string[];
  readonly explanation?: Readonly<Record<string, number>>;
}

/** `agent: null` searches every agent of the tenant. A `user` sees what is theirs and what is nobody's; null or absent sees all. */
export interface ReadScope {
  readonly tenant: string;
  readonly agent: string | null;
  readonly user?: string | null;
  /**
   * Owners of the same tenant that are read together with `agent`, such as "@user" and "@tenant". Only on behalf of a named agent and
   * user: a shared owner has what is of each user. @throws EtudeError TENANT_MISSING without them
   */
  readonly also?: readonly string[];
}

/**
 * Every transition, losslessly, and the episodes they make up.
 *
 * Stores are idempotent by id. @throws EtudeError TENANT_MISSING, MEMORY_UNAVAILABLE, MEMORY_FULL
 * Not in it: forgetting, erasure.
 */
export interface EpisodicMemory {
  storeTransition(transition: Transition): Promise<void>;
  storeEpisode(episode: Episode): Promise<void>;
  /** Finds transitions by prompt and draft, episodes by context, actions, skills, outcomes and reflection. */
  search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]>;
  /** Newest first, not older than `sinceMs` (ms since 1970). */
  recent(scope: ReadScope, sinceMs: number, limit: number): Promise<readonly Episode[]>;
  /** All not older than `sinceMs`, by id: a repeat meets them in the same order. Read page by page. */
  every(scope: ReadScope, sinceMs: number): AsyncIterable<Episode>;
  /** All attempts of a rollout in order, unabridged. */
  transitions(scope: ReadScope, rolloutId: string): Promise<readonly Transition[]>;
}

/** Facts. Storing a known one reinforces it. Not in it: deciding what is a fact. */
export interface SemanticMemory {
  /** One unit: all or nothing; the same `unitId` again changes nothing. */
  applyFacts(tenant: string, unitId: string, facts: readonly Fact[]): Promise<{ added: number; reinforced: number }>;
  /** Whether this unit was applied before. */
  wasApplied(tenant: string, unitId: string): Promise<boolean>;
  search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]>;
  list(scope: ReadScope, limit: number): Promise<readonly Fact[]>;
}

export type SkillWords = 'ignored' | 'edited' | 'kept';

/** How a skill is stored. */
export interface StoreSkillOptions {
  /** Who stores it: name of a key, or of a service; where it came from by default. */
  readonly by?: string;
  /** The newest version that its author looked at. Absent: whatever is newest. */
  readonly baseVersion?: number;
  /** A reviewer stores it, or it is a copy of what one approved: marks of versions before it don't go on. */
  readonly isReviewed?: boolean;
  /**
   * What words (description, tags, category, examples, held-out tests) come to where this content is there in others. `ignored`, the default:
   * to nothing, since a model words anew what it learns again. `edited`: an author's are the next version, where one with the content is
   * living. `kept`: they are always.
   */
  readonly words?: SkillWords;
  /** How many names of skills that are neither rejected nor archived the agent may have for the skill's user; 0 or absent: any number. */
  readonly namesMax?: number;
  /**
   * Why a new version is out of use from the beginning: it is archived at once, takes up no room, and comes into use only where somebody
   * restores it. Of content that is there already nothing changes.
   */
  readonly setAside?: string;
}

/** Skills with versions and status. Not in it: verification, approval. */
export interface ProceduralMemory extends SkillRegistry {
  /**
   * Stores a new version as a candidate, whatever status, proof or history it says it has; what one (agent, name, user) has already is
   * the version that is there, with the sources of both (`knownVersion`). Code that is marked anywhere in the tenant is marked here.
   * Answers the stored version.
   * @throws EtudeError ABORTED where another version than `baseVersion` is the newest; FAILED_PRECONDITION for a
   *   new name beyond `namesMax`, however many come at once
   */
  store(skill: Skill, options?: StoreSkillOptions): Promise<Skill>;
  /** Newest version, or the one asked for; the reader's own before nobody's, and then any user's. null where there is none. */
  get(scope: ReadScope, name: string, version?: number): Promise<Skill | null>;
  /**
   * The newest version of each (with `status`, the newest that has it; with `category`, those in it or below), by name, agent and user,
   * nobody's first, after those given: without `afterUser` behind every user's.
   */
  list(
    scope: ReadScope,
    options: {
      status?: SkillStatus;
      category?: string;
      limit: number;
      afterName?: string;
      afterAgent?: string;
      afterUser?: string | null;
    },
  ): Promise<readonly Skill[]>;
  /** Active skills only, best first. */
  search(
    scope: ReadScope,
    query: SearchQuery,
  ): Promise<ReadonlyArray<{ skill: Skill; similarity: number; score: number; explanation?: Readonly<Record<string, number>> }>>;
  /** Active skills that solved a task with this fingerprint. */
  byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]>;
  /** Counts, rate (alpha 0.1) and, on success, the new cue and fingerprint of its owner's skill; exactly once per `useId`. */
  recordUse(useId: string, use: Extract<MemoryWrite, { kind: 'skill_use' }>): Promise<void>;
}

/**
 * Where the domain puts what must reach memory. Durable before it returns; the same id again changes nothing.
 * No two tenants use the same one. Applied in the background by the consolidation worker.
 */
export interface MemoryOutbox {
  put(tenant: string, writeId: string, write: MemoryWrite): Promise<void>;
}
