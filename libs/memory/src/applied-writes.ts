import type { MemoryWrite, Scope, Skill } from '@etude/contracts/memory';
import type { MemoryFile } from './memory-file.js';
import type { Commit, SqliteEpisodicMemory } from './sqlite-episodic-memory.js';
import type { SqliteProceduralMemory } from './sqlite-procedural-memory.js';

export interface AppliedWrite {
  /** False: it was applied before, and nothing changed. */
  readonly applied: boolean;
  /** Of a write of kind `skill`: as it is stored, also when it was applied before. */
  readonly skill: Skill | null;
}

/** Applies what comes out of the outbox, each write once: the record and the note that it was applied are one transaction. */
export class AppliedWrites {
  readonly #file: MemoryFile;
  readonly #episodic: SqliteEpisodicMemory;
  readonly #procedural: SqliteProceduralMemory;

  constructor(file: MemoryFile, episodic: SqliteEpisodicMemory, procedural: SqliteProceduralMemory) {
    this.#file = file;
    this.#episodic = episodic;
    this.#procedural = procedural;
  }

  /** @throws EtudeError PERMISSION_DENIED for a record of another tenant; NOT_FOUND for a use of an unknown skill */
  async apply(tenant: string, writeId: string, write: MemoryWrite): Promise<AppliedWrite> {
    const isNew = await this.#file.read({ tenant, agent: null }, (rows) => {
      rows.requireOwn(scopeOf(write));
      return !rows.wasApplied('write', writeId);
    });
    const commit: Commit<Skill | null> = isNew || write.kind === 'skill' ? await this.#prepare(writeId, write) : () => null;
    return this.#file.write({ tenant, agent: null }, (rows) => {
      const first = rows.markApplied('write', writeId);
      return { applied: first, skill: first || write.kind === 'skill' ? commit(rows) : null };
    });
  }

  async wasApplied(tenant: string, writeId: string): Promise<boolean> {
    return this.#file.read({ tenant, agent: null }, (rows) => rows.wasApplied('write', writeId));
  }

  async #prepare(writeId: string, write: MemoryWrite): Promise<Commit<Skill | null>> {
    if (write.kind === 'skill') return this.#procedural.prepareSkill(write.skill);
    if (write.kind === 'transition') return andNull(await this.#episodic.prepareTransition(write.transition));
    if (write.kind === 'episode') return andNull(await this.#episodic.prepareEpisode(write.episode));
    return andNull(await this.#procedural.prepareUse(writeId, write));
  }
}

function andNull(commit: Commit): Commit<null> {
  return (rows) => {
    commit(rows);
    return null;
  };
}

function scopeOf(write: MemoryWrite): Scope {
  if (write.kind === 'skill') return write.skill.scope;
  if (write.kind === 'transition') return write.transition.scope;
  return write.kind === 'episode' ? write.episode.scope : write.scope;
}
