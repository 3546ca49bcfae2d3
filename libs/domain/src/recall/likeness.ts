import { taskIdOf, taskName } from '@etude/contracts/ids';
import type { MemoryHit } from '../ports/memory.js';

/** Equal for one record, and for the summary of an episode and the episode itself. */
export function nameOf({ kind, id, layer, agent }: MemoryHit): string {
  const what = kind === 'summary' ? 'episode' : kind;
  return JSON.stringify(layer === 'procedural' ? [what, id, agent] : [what, id]);
}

/** Equal for texts that differ in white space only. */
export function contentOf({ text }: MemoryHit): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Whether a skill was made of an episode: it has its answer, verified, so that one of the two suffices. */
export function cameFrom(skill: MemoryHit, { kind, id, sources }: MemoryHit): boolean {
  if (skill.layer !== 'procedural' || (kind !== 'episode' && kind !== 'summary')) return false;
  return [id, ...sources].some((source) => skill.sources.includes(source) || skill.sources.includes(taskName(taskIdOf(source))));
}
