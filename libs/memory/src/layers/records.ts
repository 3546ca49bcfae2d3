import {
  type Change,
  type IndexedText,
  type MemoryRecord,
  RECORD_TEXTS_MAX,
  type RecordFilter,
  type RecordKind,
  type RecordStore,
  type StoredRecord,
  type WriteOptions,
} from '../record-store.js';
import { EtudeError } from '@etude/contracts/errors';
import type { DocumentChunk, Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { Clock } from '@etude/domain/ports/clock';
import type { ChatModel, Embedder, Reranker } from '@etude/domain/ports/model';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { ProofChecker } from '@etude/domain/ports/verification';
import { RESTS_ON } from '@etude/domain/skills/life/revoke-source';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EpisodeNote } from './episodic-layer.js';
import { requireVector } from '../vector-models.js';
import { turnTexts } from '@etude/domain/recall/turn-text';
import { episodeEntry, factEntry, searchableText, skillEntries, transitionEntry } from '@etude/domain/retrieval/entries';

export interface LayerDeps {
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  /** Reranks the best hits of searches with `rerank`. Absent: the chat model reranks them. */
  readonly reranker?: Reranker;
  /** Reranks if there is no reranker. If this is absent too, searches with `rerank` report `rerankFailed`. */
  readonly chatModel?: ChatModel;
  /** Checks the signatures of skill proofs before a skill may be used. Absent: the service that runs a skill checks them. */
  readonly proofChecker?: ProofChecker;
}

/** The content of a record's body: the value, and the ids of the writes that changed it last. */
export interface StoredBody<T> {
  readonly value: T;
  /** Oldest first. */
  readonly taken: readonly string[];
}

/** Maximum number of write ids that a record remembers. Each write also has a record of kind `applied`, which stays longer. */
const TAKEN_MAX = 256;

export const UNSEARCHED = { worth: 0, shown: false, title: '', text: '', sources: [] } as const;

export function bodyOf(value: object, taken: readonly string[] = []): string {
  return JSON.stringify(taken.length === 0 ? { value } : { value, taken });
}

/** @throws EtudeError MEMORY_UNAVAILABLE for a damaged body */
export function parseBody<T>({ layer, kind, key, body }: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): StoredBody<T> {
  let cause: unknown = null;
  try {
    const { value, taken = [] } = JSON.parse(body) as { value: T; taken?: readonly string[] };
    if (value !== undefined) return { value, taken };
  } catch (error) {
    cause = error;
  }
  const message = `the ${layer} record ${kind} ${JSON.stringify(key)} is damaged; restore the store from a backup`;
  throw new EtudeError('MEMORY_UNAVAILABLE', message, {}, { cause });
}

export function withTaken(taken: readonly string[], writeId: string): readonly string[] {
  return [...taken, writeId].slice(-TAKEN_MAX);
}

/** The mark of a record that forgetting has hidden from search. */
export const ARCHIVED = { archived: 'yes' } as const;

/** Whether forgetting archived the record. Skills that people archived have a status of their own, and no mark. */
export function isArchived({ fields }: Pick<MemoryRecord, 'fields'>): boolean {
  return fields.archived !== undefined;
}

export function asArchived(record: MemoryRecord): MemoryRecord {
  return { ...record, shown: false, fields: { ...record.fields, ...ARCHIVED } };
}

/** A source that every indexed record names. A record without this source isn't indexed yet. Change it whenever `RESTS_ON` changes. */
export const INDEXED = '*';

/** The field by which records are found from the names of the records that they rest on. */
export const sourceField = <K extends keyof typeof RESTS_ON>(kind: K, value: Parameters<(typeof RESTS_ON)[K]>[0]) => ({
  source: [...new Set([INDEXED, ...RESTS_ON[kind](value as never)])],
});

const ATTEMPTS_MAX = 200;
const WAIT_MS_MAX = 40;

/**
 * Runs `attempt` until it returns a value. An attempt returns null if another writer changed a revision that it had read. Pauses after each collision
 * for a random, growing time.
 * @throws EtudeError MEMORY_UNAVAILABLE after 200 collisions; `what` names the record in its message
 */
export async function untilTaken<T>(what: string, attempt: () => Promise<T | null>): Promise<T> {
  for (let collisions = 0; collisions < ATTEMPTS_MAX; collisions += 1) {
    if (collisions > 0) await sleep(Math.random() * Math.min(WAIT_MS_MAX, 2 ** collisions));
    const done = await attempt();
    if (done !== null) return done;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `${what} was changed by others ${ATTEMPTS_MAX} times while it was being written; try again`);
}

/** Runs the writes of one owner one after another, and writes of different owners at the same time. Covers only this process. */
export class OwnerTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>({ tenant, agent, user }: Scope, work: () => Promise<T>): Promise<T> {
    const owner = JSON.stringify([tenant, agent, user]);
    const before = this.#last.get(owner) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#last.set(owner, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(owner) === turn) this.#last.delete(owner);
    }
  }
}

/** The record with this key, if the reader sees it. @throws EtudeError TENANT_MISSING */
export async function loadOne(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  kind: RecordKind,
  key: string,
): Promise<StoredRecord | null> {
  return (await store.load(scope, layer, kind, [key]))[0] ?? null;
}

const PAGE = 64;

/** All records that a reader sees and the filter accepts, in key order, starting after `afterKey`, read page by page. */
export async function* everyRecord(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  filter: RecordFilter,
  afterKey?: string,
): AsyncGenerator<StoredRecord> {
  for (let after = afterKey; ;) {
    const page = await store.find(scope, layer, filter, { order: 'key', limit: PAGE, afterKey: after });
    yield* page;
    after = page.at(-1)?.key;
    if (page.length < PAGE) return;
  }
}

export async function* everyValue<T>(...asked: Parameters<typeof everyRecord>): AsyncGenerator<T> {
  for await (const record of everyRecord(...asked)) yield parseBody<T>(record).value;
}

/** The change that stores a record without searchable texts in place of `known`, or as a new one. */
export function putting(record: MemoryRecord, known: StoredRecord | null | undefined): Change {
  return known ? { do: 'update', record, revision: known.revision } : { do: 'insert', record, indexed: [] };
}

/** Stores a record without searchable texts in place of `known`, or as a new one. False if another writer was faster. */
export async function putRecord(store: RecordStore, record: MemoryRecord, known: StoredRecord | null | undefined): Promise<boolean> {
  return (await store.write(record.scope.tenant, [putting(record, known)]))[0] === true;
}

/** Reloads a record after a conflict. @param change returns null to leave the record unchanged @returns how many records were changed */
export async function updateEach(
  store: RecordStore,
  records: readonly StoredRecord[],
  change: (record: StoredRecord) => MemoryRecord | null,
  how: WriteOptions = {},
): Promise<number> {
  let changed = 0;
  for (const read of records) {
    const { tenant } = read.scope;
    let current: StoredRecord | undefined = read;
    const isChanged = await untilTaken(`${read.kind} ${read.key}`, async () => {
      const next = current === undefined ? null : change(current);
      if (current === undefined || next === null) return false;
      const [done] = await store.write(tenant, [{ do: 'update', record: next, revision: current.revision }], how);
      if (done) return true;
      [current] = await store.load({ tenant, agent: null }, read.layer, read.kind, [read.key]);
      return null;
    });
    if (isChanged) changed += 1;
  }
  return changed;
}

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

export function factTexts(fact: Fact): readonly string[] {
  return [factEntry(fact).indexed, ...[...(fact.wordings ?? []), ...(fact.outdated ?? [])].map(({ text }) => text)];
}

export function indexedTextsOf(record: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): readonly string[] {
  const texts = TEXTS[record.kind];
  return texts === undefined ? [] : texts(parseBody(record).value as never);
}

/** Blank texts aren't embedded; their vector is null. @throws EtudeError EMBEDDING_LENGTH_WRONG, MODEL_UNAVAILABLE */
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

/** Embeds all texts in one call. @throws EtudeError INVALID_ARGUMENT for a record with too many texts, before anything is embedded */
export async function insertsOf(embedder: Embedder, records: readonly MemoryRecord[]): Promise<readonly Change[]> {
  const texts = records.map(indexedTextsOf);
  for (const [i, { length }] of texts.entries())
    if (length > RECORD_TEXTS_MAX)
      throw new EtudeError(
        'INVALID_ARGUMENT',
        `record ${records[i]!.key} has ${length} searchable texts; at most ${RECORD_TEXTS_MAX} are allowed`,
      );
  const indexed = [...(await embedTexts(embedder, texts.flat()))];
  return records.map((record, i) => ({ do: 'insert', record, indexed: indexed.splice(0, texts[i]!.length) }));
}

/** The change of a stored record. Its texts are embedded again if they changed. */
export async function rewriteOf(embedder: Embedder, { revision, ...before }: StoredRecord, record: MemoryRecord): Promise<Change> {
  const texts = indexedTextsOf(record);
  const isSame = texts.join('\n') === indexedTextsOf(before).join('\n');
  return isSame ? { do: 'update', record, revision } : { do: 'replace', record, indexed: await embedTexts(embedder, texts), revision };
}

/** Concurrent calls for the same text share one call of the embedder, because recall searches three layers for one text at once. */
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
