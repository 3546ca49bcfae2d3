import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { EpisodicMemory, ProceduralMemory } from '../ports/memory.js';

/**
 * Puts one write of the outbox into its layer. Every layer takes the same record once, so that repeating a write changes nothing.
 *
 * @returns a candidate that still has to be verified, as it was stored, or null
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL (retryable)
 */
export async function applyMemoryWrite(
  writeId: string,
  write: MemoryWrite,
  { episodic, procedural }: { episodic: EpisodicMemory; procedural: ProceduralMemory },
): Promise<Skill | null> {
  switch (write.kind) {
    case 'transition':
      await episodic.storeTransition(write.transition);
      return null;
    case 'episode':
      await episodic.storeEpisode(write.episode);
      return null;
    case 'skill_use':
      await procedural.recordUse(writeId, write);
      return null;
    default: {
      const stored = await procedural.store(write.skill);
      return stored.status === 'candidate' ? stored : null;
    }
  }
}
