import type { DocumentChunk, Episode, Fact, Skill, Transition } from '@etude/contracts/memory';
import { episodeEntry, factEntry, searchableText, skillEntries, transitionEntry } from '@etude/domain/retrieval/entries';
import type { MemoryRecord, RecordKind } from '../record-store.js';
import type { EpisodeNote } from './episode-notes.js';
import { parseBody } from './stored-body.js';

/** What a value is found by, by the kind of its record. A kind that is not here is never searched for. */
const TEXTS: { readonly [kind in RecordKind]?: (value: never) => readonly string[] } = {
  transition: (value: Transition) => [transitionEntry(value).indexed],
  episode: (value: Episode) => [episodeEntry(value).indexed],
  summary: (value: EpisodeNote) => [searchableText(value.text)],
  reflection: (value: EpisodeNote) => [searchableText(value.text)],
  fact: (value: Fact) => [factEntry(value).indexed, ...(value.wordings ?? [])],
  chunk: ({ title = '', headings, text }: DocumentChunk) => [
    searchableText([title, ...headings.filter((heading) => heading !== title), text].join('\n').trim()),
  ],
  skill: (value: Skill) => skillEntries(value).map(({ indexed }) => indexed),
};

/** The texts of a record that are embedded and whose words are indexed, made from its body alone. */
export function indexedTextsOf(record: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): readonly string[] {
  const texts = TEXTS[record.kind];
  return texts === undefined ? [] : texts(parseBody(record).value as never);
}
