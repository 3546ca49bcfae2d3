import type { Episode, Transition } from '@etude/contracts/memory';
import { episodeEntry, transitionEntry } from '@etude/domain/retrieval/entries';
import type { MemoryRecord } from '../record-store.js';
import { bodyOf } from './stored-body.js';

export function transitionRecord(transition: Transition): MemoryRecord {
  const { id, scope, rolloutId } = transition;
  const { title, text, sources, createdAt, worth } = transitionEntry(transition);
  const fields = { id, rollout: rolloutId };
  const named = { layer: 'episodic', kind: 'transition', key: id, scope } as const;
  return { ...named, createdAt, worth, shown: true, fields, title, text, sources, body: bodyOf(transition) };
}

export function episodeRecord(episode: Episode): MemoryRecord {
  const { id, scope, rolloutId, skillsUsed } = episode;
  const { title, text, sources, createdAt, worth } = episodeEntry(episode);
  const fields = { id, rollout: rolloutId, ...(skillsUsed.length === 0 ? {} : { skill: skillNames(skillsUsed) }) };
  const named = { layer: 'episodic', kind: 'episode', key: id, scope } as const;
  return { ...named, createdAt, worth, shown: true, fields, title, text, sources, body: bodyOf(episode) };
}

/** With and without the version: `name@2` is a use of `name`. */
function skillNames(used: readonly string[]): readonly string[] {
  return [...new Set(used.flatMap((skill) => [skill, skill.replace(/@\d+$/, '')]))];
}
