import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';

/** One version of one owner's skill, with the content that was looked at. */
export interface SkillKey {
  readonly tenant: string;
  /** Whose it is: an agent, or "@user", "@tenant" where it is shared. */
  readonly agent: string;
  readonly name: string;
  readonly version: number;
  readonly digest: string;
}

/** One change of status. */
export interface SkillMove {
  readonly key: SkillKey;
  readonly to: SkillStatus;
  /** Who wants it: name of a key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** ms since 1970 */
  readonly at: number;
  /** One line each, added to what there is. */
  readonly evidence?: readonly string[];
  /** What verification found; needed for `verified`. */
  readonly contract?: SkillContract;
  readonly proof?: SkillProof;
  /** Name of the skill that is used in its place; null takes it away. */
  readonly replacedBy?: string | null;
}

/**
 * The life of skills: versions, and the only way from one status to another.
 *
 * A skill is stored as a candidate and moves by the table of `skill-life.ts` alone. What becomes verified or active has a proof for
 * exactly its content: the digest is made again from code, contract, tests and dependencies, whatever the record says.
 * @throws EtudeError NOT_FOUND, ABORTED (another status or content than was looked at), FAILED_PRECONDITION (no proof for it)
 * Not in it: finding skills, verification, signatures, who may do what.
 */
export interface SkillRegistry {
  /** Newest first; whoever the user is. */
  versions(owner: { readonly tenant: string; readonly agent: string }, name: string): Promise<readonly Skill[]>;
  /** In this order, all of one tenant; a repeat after a crash finishes what was begun: a move that took place is not repeated. */
  move(moves: readonly SkillMove[]): Promise<readonly Skill[]>;
  /** Versions, active ones or waiting for review, that call this one. */
  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'name'>): Promise<readonly Skill[]>;
  /** Adds one to what was offered; lost counts are no error. */
  countOffers(keys: ReadonlyArray<Pick<SkillKey, 'tenant' | 'agent' | 'name' | 'version'>>): Promise<void>;
}
