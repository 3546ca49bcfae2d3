import type { conversationLayer } from './layers/conversations.js';
import type { itemShows } from './layers/item-shows.js';
import type { listRecords, recallMemory } from './layers/memory-reads.js';
import type { episodicLayer } from './layers/episodic-layer.js';
import type { proceduralLayer } from './layers/procedural-layer.js';
import type { appliedWrites } from './layers/repeats.js';
import type { semanticLayer } from './layers/semantic-layer.js';
import type { RecordKind, RecordStore, StoredRecord } from './record-store.js';
import type { recordUpkeep } from './upkeep/record-upkeep.js';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ConsolidationUnits } from '@etude/domain/ports/consolidation-units';
import type { ReadScope, SearchQuery } from '@etude/domain/ports/memory';

/** A search with filters. An absent filter lets everything through. */
export interface LayerQuery extends SearchQuery {
  readonly kinds?: readonly RecordKind[];
  /** Lowest importance (episodic), confidence (semantic) or success rate (procedural), 0 to 1. */
  readonly worthMin?: number;
  /** Leaves out hits that are relevant neither by meaning nor by words. Default false. */
  readonly relevantOnly?: boolean;
  /** Includes archived records. Default false. */
  readonly archived?: boolean;
  /** Asks the chat model to reorder the best hits. If it fails, the order stays and `explanation` has `rerankFailed`. */
  readonly rerank?: boolean;
}

export type SemanticLayer = ReturnType<typeof semanticLayer>;
export type ConversationLayer = ReturnType<typeof conversationLayer>;
export type ProceduralLayer = ReturnType<typeof proceduralLayer>;
/** Applies writes from the outbox, each exactly once, also after a crash in the middle. */
export type AppliedWrites = ReturnType<typeof appliedWrites>;
/** Maintenance of an owner's memory, or of the whole store. Every call can be repeated after a crash. */
export type MemoryUpkeep = ReturnType<typeof recordUpkeep>;

export interface RecallRequest {
  readonly context: string;
  /** Maximum number of hits of each kind; defaults 5, 3, 3. */
  readonly facts?: number;
  readonly experiences?: number;
  readonly procedures?: number;
  /** Maximum number of tokens of all texts together; default 800. */
  readonly tokensMax?: number;
  /** Lowest calibrated similarity; default 0.3. Less similar memories are kept only if rare words match. 0 keeps everything found. */
  readonly similarityMin?: number;
}

/** A record of any kind in the form that callers read. `id` is the id that search hits show. */
export interface PlainRecord {
  readonly id: string;
  readonly layer: MemoryLayer;
  readonly kind: RecordKind;
  readonly scope: Scope;
  /** ms since 1970 */
  readonly createdAt: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface RecordListQuery {
  readonly kind: RecordKind;
  readonly category?: string;
  /** Includes records that search doesn't find: archived, replaced and inactive ones. Default false. */
  readonly all?: boolean;
  readonly limit: number;
  /** `next` of the previous page. */
  readonly after?: Pick<StoredRecord, 'createdAt' | 'key'>;
}

export interface Memory {
  readonly store: RecordStore;
  readonly episodic: ReturnType<typeof episodicLayer>;
  readonly semantic: SemanticLayer;
  readonly procedural: ProceduralLayer;
  readonly conversations: ConversationLayer;
  /** Counts per item how rollouts ended, with the item and without it. */
  readonly shows: ReturnType<typeof itemShows>;
  readonly appliedWrites: AppliedWrites;
  readonly units: ConsolidationUnits;
  readonly upkeep: MemoryUpkeep;
  /** Any record that search can find, by the id of its hit; null if there is none. Skills are looked up per reader with `findSkill`. */
  get(scope: ReadScope, layer: Exclude<MemoryLayer, 'procedural'>, id: string): Promise<PlainRecord | null>;
  /** Records of one kind that the reader sees, newest first. Pass `next` as `after` to get the next page; `next` is null on the last page. */
  list(scope: ReadScope, query: RecordListQuery): ReturnType<typeof listRecords>;
  /** Recalls memories with sources, without near duplicates, within a token budget. With `partial`, `missing` names the layers that failed. */
  recall(scope: ReadScope, request: RecallRequest, options?: { readonly partial?: boolean }): ReturnType<typeof recallMemory>;
  /** A readiness check. @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
  check(): Promise<void>;
  close(): Promise<void>;
}

export interface AppliedWrite {
  /** False if the write was applied before, so that nothing changed. */
  readonly applied: boolean;
  /** The stored skill for a write of kind `skill`, also if it was applied before; null for other kinds. */
  readonly skill: Skill | null;
}

export interface ArchivePolicy {
  /** Records with a lower score (0 to 1, see `forgettingScore`) are archived. */
  readonly scoreMax: number;
  readonly layers?: readonly MemoryLayer[];
  /** Younger records are never archived; in days, default 30. */
  readonly olderThanDays?: number;
}

export interface ArchiveReport {
  readonly looked: number;
  readonly archived: number;
  /** The archived records with the lowest scores, lowest first, at most 100. */
  readonly examples: ReadonlyArray<{ layer: MemoryLayer; scope: Scope; id: string; title: string; score: number }>;
}

export interface Progress {
  readonly done: number;
  readonly total: number | null;
}

export interface ImportReport {
  readonly lines: number;
  readonly added: number;
  /** Lines whose record was already stored. */
  readonly unchanged: number;
  /** The first 100 refused lines. They changed nothing. */
  readonly refused: ReadonlyArray<{ line: number; reason: string }>;
}

export interface StoreReport {
  /** How many records and skills were checked, under the keys `records` and `skills`. */
  readonly checked: Readonly<Record<string, number>>;
  /** Problems that were repaired, one sentence each, at most 100. */
  readonly repaired: readonly string[];
  /** Problems that remain, one sentence each, at most 100. */
  readonly problems: readonly string[];
}

export interface ReembedReport {
  readonly embedded: number;
  readonly left: number;
  readonly state: 'running' | 'ready' | 'finished';
}
