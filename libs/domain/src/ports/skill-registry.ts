import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';

/** Whose a skill is, whoever the user is: versions are counted by it. */
export interface SkillOwner {
  readonly tenant: string;
  /** An agent, or "@user", "@tenant" where it is shared. */
  readonly agent: string;
}

/** One version of one owner's skill, with the content that was looked at. */
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
  /** Newest first; whoever the user is. With `status`, only those that have it. */
  versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]>;
  /** Names of an owner's skills with a version neither rejected nor archived; what is beyond `countMax` is not counted. */
  countNames(owner: SkillOwner, countMax: number): Promise<number>;
  /** In this order, all of one tenant; a repeat after a crash finishes what was begun: a move that took place is not repeated. */
  move(moves: readonly SkillMove[]): Promise<readonly Skill[]>;
  /** Versions that call this one; only active ones or waiting for review, but with `all`, which knows every status. */
  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'name'>, options?: { readonly all?: boolean }): Promise<readonly Skill[]>;
  /** Adds one to what was offered; lost counts are no error. */
  countOffers(keys: ReadonlyArray<Pick<SkillKey, 'tenant' | 'agent' | 'name' | 'version'>>): Promise<void>;
}
