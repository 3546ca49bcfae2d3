import type { LayerQuery } from '../memory.js';
import type { Change, MemoryRecord, RecordFilter, RecordStore } from '../record-store.js';
import { bodyOf, everyValue, insertsOf, type LayerDeps, parseBody, sourceField } from './records.js';
import { hitOf, searchLayer } from './memory-search.js';
import { type Episode, Scope, type Transition } from '@etude/contracts/memory';
import { type EpisodicMemory, type MemoryHit, type ReadScope, wholeTenant } from '@etude/domain/ports/memory';
import { episodeEntries, episodeEntry, type NotedEpisode, transitionEntry } from '@etude/domain/retrieval/entries';
import { z } from 'zod';

const LAYER = 'episodic';

/** Stores transitions and episodes in full. Summaries and reflections of episodes go to the semantic layer. */
export function episodicLayer(deps: LayerDeps) {
  const { store } = deps;
  const write = async ({ tenant }: Scope, changes: readonly Change[]) => void (await store.write(tenant, changes));
  const layer = {
    /** The changes that store a transition. Empty if its id is already stored. */
    transitionChanges: (transition: Transition) => newInserts(deps, transitionRecord(transition)),
    /** Like `transitionChanges`. Summary and reflection are inserted first, so a stored episode always has them. */
    episodeChanges: (episode: Episode) => newInserts(deps, episodeRecord(episode), noteRecords(episode)),
    storeTransition: async (transition: Transition) => write(transition.scope, await layer.transitionChanges(transition)),
    storeEpisode: async (episode: Episode) => write(episode.scope, await layer.episodeChanges(episode)),
    async search(scope: ReadScope, query: LayerQuery): Promise<readonly MemoryHit[]> {
      return (await searchLayer(deps, scope, LAYER, query)).map((ranked) => hitOf(ranked, query));
    },
    /** Episodes made at `sinceMs` (ms since 1970) or later, newest first. */
    recent: (scope: ReadScope, sinceMs: number, limit: number) => newest(store, scope, { createdSince: sinceMs }, limit),
    every: (scope: ReadScope, sinceMs: number) => everyValue<Episode>(store, scope, LAYER, { kinds: ['episode'], createdSince: sinceMs }),
    bySkill: (scope: ReadScope, skill: string, limit: number) => newest(store, scope, { where: { skill } }, limit),
    async get(scope: ReadScope, id: string): Promise<Episode | Transition | null> {
      const found = await Promise.all([store.load(scope, LAYER, 'episode', [id]), store.load(scope, LAYER, 'transition', [id])]);
      const [record] = found.flat();
      return record === undefined ? null : parseBody<Episode | Transition>(record).value;
    },
    async transitions(scope: ReadScope, rolloutId: string): Promise<readonly Transition[]> {
      const filter = { kinds: ['transition'], where: { rollout: rolloutId } } as const;
      const found = await Array.fromAsync(everyValue<Transition>(store, scope, LAYER, filter));
      return found.toSorted((a, b) => a.attempt - b.attempt || a.createdAt - b.createdAt);
    },
  };
  return layer satisfies EpisodicMemory;
}

async function newest(store: RecordStore, scope: ReadScope, filter: RecordFilter, limit: number): Promise<readonly Episode[]> {
  const found = await store.find(scope, LAYER, { ...filter, kinds: ['episode'] }, { order: 'newest', limit });
  return found.map((record) => parseBody<Episode>(record).value);
}

/** Returns no inserts for a known record, so it isn't embedded again. */
async function newInserts(
  { store, embedder }: LayerDeps,
  record: MemoryRecord,
  before: readonly MemoryRecord[] = [],
): Promise<readonly Change[]> {
  if ((await store.load(wholeTenant(record.scope), LAYER, record.kind, [record.key])).length > 0) return [];
  return insertsOf(embedder, [...before, record]);
}

export function transitionRecord(transition: Transition): MemoryRecord {
  const { id, scope, rolloutId } = transition;
  const { indexed: _indexed, ...entry } = transitionEntry(transition);
  return { ...entry, layer: LAYER, key: id, scope, shown: true, fields: { id, rollout: rolloutId }, body: bodyOf(transition) };
}

export function episodeRecord(episode: Episode): MemoryRecord {
  const { id, scope, rolloutId, skillsUsed } = episode;
  const { indexed: _indexed, ...entry } = episodeEntry(episode);
  const source = sourceField('episode', episode);
  const fields = { id, rollout: rolloutId, ...source, ...(skillsUsed.length === 0 ? {} : { skill: skillNames(skillsUsed) }) };
  return { ...entry, layer: LAYER, key: id, scope, shown: true, fields, body: bodyOf(episode) };
}

/** Skill names with and without the version: a use of `name@2` is also a use of `name`. */
function skillNames(used: readonly string[]): readonly string[] {
  return [...new Set(used.flatMap((skill) => [skill, skill.replace(/@\d+$/, '')]))];
}

/** The summary or the reflection of an episode, as the semantic layer stores it. */
export const EpisodeNote = z.strictObject({
  /** The episode's id. */
  id: z.string(),
  scope: Scope,
  rolloutId: z.string(),
  text: z.string(),
  touched: z.array(z.string()).optional(),
  createdAt: z.number().int(),
});
export type EpisodeNote = z.output<typeof EpisodeNote>;

/** The semantic records for the summary and the reflection of an episode. An empty text makes no record. */
export function noteRecords(episode: NotedEpisode & Pick<Episode, 'id' | 'scope'>): readonly MemoryRecord[] {
  const { id, scope, rolloutId, createdAt, touched } = episode;
  return episodeEntries(episode).map(({ indexed: _indexed, ...entry }) => {
    const text = (entry.kind === 'summary' ? episode.summary : episode.reflection) ?? '';
    const note: EpisodeNote = { id, scope, rolloutId, text, createdAt, ...(touched === undefined ? {} : { touched }) };
    return { ...entry, layer: 'semantic', key: id, scope, shown: true, fields: { id, rollout: rolloutId }, body: bodyOf(note) };
  });
}
