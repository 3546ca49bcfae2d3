import type { Episode, Scope } from '@etude/contracts/memory';
import { episodeEntries, type NotedEpisode } from '@etude/domain/retrieval/entries';
import type { MemoryRecord } from '../record-store.js';
import { bodyOf } from './stored-body.js';

/** The summary or the reflection of an episode, as the semantic layer keeps it. */
export interface EpisodeNote {
  /** Of the episode. */
  readonly id: string;
  readonly scope: Scope;
  readonly rolloutId: string;
  readonly text: string;
  /** As of the episode. */
  readonly touched?: Episode['touched'];
  readonly createdAt: number;
}

/** Semantic records of what an episode teaches; an empty text is none. */
export function noteRecords(episode: NotedEpisode & Pick<Episode, 'id' | 'scope'>): readonly MemoryRecord[] {
  const { id, scope, rolloutId, createdAt, touched } = episode;
  return episodeEntries(episode).flatMap(({ kind, title, text, worth, sources }) => {
    if (kind !== 'summary' && kind !== 'reflection') return [];
    const told = (kind === 'summary' ? episode.summary : episode.reflection) ?? '';
    const note: EpisodeNote = { id, scope, rolloutId, text: told, createdAt, ...(touched === undefined ? {} : { touched }) };
    const shared = { layer: 'semantic', kind, key: id, scope, createdAt, worth, shown: true } as const;
    const fields = { id, rollout: rolloutId };
    return [{ ...shared, fields, title, text, sources, body: bodyOf(note) }];
  });
}
