import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';

/** Whose a skill is. Versions are counted for each owner and user, so that nobody can tell from them what another user has. */
export interface SkillOwner {
  readonly tenant: string;
  /** An agent, or "@user", "@tenant" where it is shared. */
  readonly agent: string;
  /** Of exactly this user; null: nobody's in particular. Absent: of every user, and nobody's. */
  readonly user?: string | null;
}

/**
 * One version of one owner's skill, with the content that was looked at. Without a user it is nobody's.
 */
export interface SkillKey extends SkillOwner {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
}

/** One change of status. */
export interface SkillMove {
  readonly key: SkillKey;
  readonly to: SkillStatus;
  /** Only out of one of these; any that the table allows where it is left out. */
  readonly from?: readonly SkillStatus[];
  /** Who wants it: name of a key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** ms since 1970 */
  readonly at: number;
  /** One line each, added to what there is. */
  readonly evidence?: readonly string[];
  /** What verification found; needed for `verified`. A proof of null takes away the one that there is: it is not believed any more. */
  readonly contract?: SkillContract;
  readonly proof?: SkillProof | null;
  /** Name of the skill that is used in its place; null takes it away. */
  readonly replacedBy?: string | null;
}

export interface MoveOptions {
  /** How many names of skills that are neither rejected nor archived the owner may have; 0 or absent: any number. */
  readonly namesMax?: number;
}

/** A version that a model or an agent got to see. */
export interface SkillOffer extends Omit<SkillKey, 'digest'> {
  /** ms since 1970 at which it was loaded into code that an agent is to run; absent: it was shown. */
  readonly loadedAt?: number;
}

/**
 * The life of skills: versions, and the only way from one status to another.
 *
 * A skill is stored as a candidate and moves by the table of `skill-life.ts` alone. What becomes verified or active has a proof for
 * exactly its content: the digest is made again from code, contract, tests and dependencies, whatever the record says. Of one owner's
 * versions, those of one user, at most one is active.
 * @throws EtudeError NOT_FOUND, ABORTED (another status or content than was looked at, or another version is active), FAILED_PRECONDITION (no proof for it)
 * Not in it: finding skills, verification, signatures, who may do what.
 */
export interface SkillRegistry {
  /** Newest first, and of equal numbers nobody's first. With `status`, only those that have it. */
  versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]>;
  /** Every version of a tenant's skills, or of one owner's, in the order of names and owners; read a page at a time. */
  every(owner: Pick<SkillOwner, 'tenant'> & { readonly agent: string | null }, statuses?: readonly SkillStatus[]): AsyncIterable<Skill>;
  /** Names of an owner's skills with a version neither rejected nor archived; what is beyond `countMax` is not counted. */
  countNames(owner: SkillOwner, countMax: number): Promise<number>;
  /**
   * In this order, all of one tenant; a repeat after a crash finishes what was begun: a move that took place is not repeated.
   * @throws EtudeError FAILED_PRECONDITION where a name would take up room again beyond `namesMax`, however many come at once
   */
  move(moves: readonly SkillMove[], options?: MoveOptions): Promise<readonly Skill[]>;
  /** Versions that call one of this owner's; only active ones or waiting for review, but with `all`, which knows every status. */
  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>, options?: { readonly all?: boolean }): Promise<readonly Skill[]>;
  /** Adds one to what was offered, and notes the latest load; lost counts are no error. */
  countOffers(offers: readonly SkillOffer[]): Promise<void>;
}
