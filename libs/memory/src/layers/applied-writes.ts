import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { StoreSkillOptions } from '@etude/domain/ports/memory';

export interface AppliedWrite {
  /** False: it was applied before, and nothing changed. */
  readonly applied: boolean;
  /** Of a write of kind `skill`: as it is stored, also when it was applied before. */
  readonly skill: Skill | null;
}

/** Applies what comes out of the outbox, each write once, also when a crash cut it in the middle. */
export interface AppliedWrites {
  /**
   * @throws EtudeError PERMISSION_DENIED for a record of another tenant; NOT_FOUND for a use of an unknown skill; FAILED_PRECONDITION for a
   *   skill of a new name beyond `namesMax`
   */
  apply(tenant: string, writeId: string, write: MemoryWrite, options?: Pick<StoreSkillOptions, 'namesMax'>): Promise<AppliedWrite>;
  wasApplied(tenant: string, writeId: string): Promise<boolean>;
}
