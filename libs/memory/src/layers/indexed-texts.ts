import { type Change, type IndexedText, type MemoryRecord, RECORD_TEXTS_MAX, type RecordKind } from '../record-store.js';
import type { EpisodeNote } from './episodic-layer.js';
import { requireVector } from '../vector-models.js';
import { parseBody } from './records.js';
import { EtudeError } from '@etude/contracts/errors';
import type { DocumentChunk, Episode, Fact, Skill, Transition } from '@etude/contracts/memory';
import type { Embedder } from '@etude/domain/ports/embedder';
import { turnTexts } from '@etude/domain/recall/turn-text';
import { episodeEntry, factEntry, searchableText, skillEntries, transitionEntry } from '@etude/domain/retrieval/entries';

/** The searchable texts of each kind of record. Kinds that are missing here are never searched. */
const TEXTS: { readonly [kind in RecordKind]?: (value: never) => readonly string[] } = {
  transition: (value: Transition) => [transitionEntry(value).indexed],
  episode: (value: Episode) => [episodeEntry(value).indexed],
  summary: (value: EpisodeNote) => [searchableText(value.text)],
  reflection: (value: EpisodeNote) => [searchableText(value.text)],
  fact: factTexts,
  chunk: ({ title = '', headings, text }: DocumentChunk) => [
    searchableText([title, ...headings.filter((heading) => heading !== title), text].join('\n').trim()),
  ],
  turn: turnTexts,
  skill: (value: Skill) => skillEntries(value).map(({ indexed }) => indexed),
};

/** The searchable texts of a fact, its own first. */
export function factTexts(fact: Fact): readonly string[] {
  return [factEntry(fact).indexed, ...[...(fact.wordings ?? []), ...(fact.outdated ?? [])].map(({ text }) => text)];
}

/** The searchable texts of a record, derived only from its body. */
export function indexedTextsOf(record: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): readonly string[] {
  const texts = TEXTS[record.kind];
  return texts === undefined ? [] : texts(parseBody(record).value as never);
}

/**
 * Embeds texts. The vector is null for a text without direction, such as one without a word. Blank texts aren't sent to the embedder.
 *
 * @throws EtudeError EMBEDDING_LENGTH_WRONG, MODEL_UNAVAILABLE
 */
export async function embedTexts(embedder: Embedder, texts: readonly string[], signal?: AbortSignal): Promise<readonly IndexedText[]> {
  const told = texts.filter(isTold);
  const vectors = told.length === 0 ? [] : await embedder.embed(told, signal);
  const { model: name, dimension } = embedder.profile;
  for (const at of told.keys()) requireVector(vectors[at], { name, dimension });
  const remaining = vectors.values();
  return texts.map((text) => ({ text, vector: isTold(text) ? directed(remaining.next().value) : null }));
}

function isTold(text: string): boolean {
  return text.trim() !== '';
}

function directed(vector: Float32Array | undefined): Float32Array | null {
  return vector?.some((value) => value !== 0) ? vector : null;
}

/**
 * Builds inserts for new records, in their order, with embedded searchable texts. All texts go to the embedder in one call.
 *
 * @throws EtudeError INVALID_ARGUMENT for a record with too many texts, before anything is embedded
 */
export async function insertsOf(embedder: Embedder, records: readonly MemoryRecord[]): Promise<readonly Change[]> {
  const texts = records.map(indexedTextsOf);
  texts.forEach(({ length }, i) => requireFew(length, records[i]?.key ?? ''));
  const indexed = await embedTexts(embedder, texts.flat());
  let next = 0;
  return records.map((record, i) => {
    const start = next;
    next += texts[i]?.length ?? 0;
    return { do: 'insert', record, indexed: indexed.slice(start, next) };
  });
}

function requireFew(texts: number, key: string): void {
  if (texts <= RECORD_TEXTS_MAX) return;
  throw new EtudeError('INVALID_ARGUMENT', `a record may have ${RECORD_TEXTS_MAX} searchable texts, but ${key} has ${texts}`);
}

/** Shares one running call among all that embed the same text: recalling searches three layers for one text at once. */
export function sharedEmbedding(embedder: Embedder): Embedder {
  const waiting = new Map<string, Promise<readonly Float32Array[]>>();
  return {
    get profile() {
      return embedder.profile;
    },
    async embed(texts, signal) {
      const [only] = texts;
      if (only === undefined || texts.length > 1 || signal !== undefined) return embedder.embed(texts, signal);
      const known = waiting.get(only);
      if (known !== undefined) return known;
      const embedding = embedder.embed(texts).finally(() => waiting.delete(only));
      waiting.set(only, embedding);
      return embedding;
    },
  };
}
