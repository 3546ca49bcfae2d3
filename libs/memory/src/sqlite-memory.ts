import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { EpisodicMemory, ProceduralMemory, SemanticMemory } from '@etude/domain/ports/memory';
import { AppliedWrites } from './applied-writes.js';
import { MemoryFile } from './memory-file.js';
import { SearchIndex } from './search-index.js';
import { SqliteEpisodicMemory } from './sqlite-episodic-memory.js';
import { SqliteProceduralMemory } from './sqlite-procedural-memory.js';
import { SqliteSemanticMemory } from './sqlite-semantic-memory.js';

export interface MemoryOptions {
  /** Created, with its directory, where there is none. */
  readonly path: string;
  /** Its model and dimension are stored with a new file; another one is refused later. */
  readonly embedder: Embedder;
  /** How old a record is, for the ranking. */
  readonly clock?: Clock;
  /** How long to wait for another process that holds the lock; 5,000 ms by default. */
  readonly lockWaitMs?: number;
  /** Beyond it writes are refused with MEMORY_FULL; by default as large as the disk. */
  readonly sizeMaxMiB?: number;
}

export interface Memory {
  readonly episodic: EpisodicMemory;
  readonly semantic: SemanticMemory;
  readonly procedural: ProceduralMemory;
  readonly appliedWrites: AppliedWrites;
  /** For readiness. @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
  check(): Promise<void>;
  close(): void;
}

const LOCK_WAIT_MS = 5_000;

/**
 * Opens the three layers in one SQLite file, which several processes may hold open at once.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE (missing rights, damage, a lock held too long), MEMORY_VERSION (another layout or
 *   embedder), MEMORY_FULL
 */
export async function openMemory(options: MemoryOptions): Promise<Memory> {
  const { path, embedder, clock = { now: Date.now }, lockWaitMs = LOCK_WAIT_MS, sizeMaxMiB = null } = options;
  const { model, dimension } = embedder.profile;
  const file = await MemoryFile.open({ path, collection: { model, dimension }, lockWaitMs, sizeMaxMiB });
  const index = new SearchIndex(embedder, clock);
  const episodic = new SqliteEpisodicMemory(file, index);
  const procedural = new SqliteProceduralMemory(file, index);
  return {
    episodic,
    procedural,
    semantic: new SqliteSemanticMemory(file, index),
    appliedWrites: new AppliedWrites(file, episodic, procedural),
    check: () => file.check(),
    close: () => file.close(),
  };
}
