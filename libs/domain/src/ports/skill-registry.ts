import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';

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
  /** Number of the owner's skill names that have a version neither rejected nor archived. Counting stops at `countMax`. */
  countNames(owner: SkillOwner, countMax: number): Promise<number>;
  /** Makes the moves in order; all belong to one tenant. A repeat after a crash skips the moves already made and makes the others. */
  move(moves: readonly SkillMove[]): Promise<readonly Skill[]>;
  /** Versions that call this skill of the owner: the active ones and those waiting for review. With `all`, versions of every status. */
  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>, options?: { readonly all?: boolean }): Promise<readonly Skill[]>;
  /** Adds one offer to the count of each version, and stores the latest load time. Losing a count is not an error. */
  countOffers(offers: readonly SkillOffer[]): Promise<void>;
}
