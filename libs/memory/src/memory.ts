import type { DocumentChunk, DocumentRecord, Episode, Fact, Scope, Skill, Transition } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type {
  EpisodicMemory,
  MemoryHit,
  ProceduralMemory,
  ReadScope,
  SearchQuery,
  SemanticMemory,
  StoreSkillOptions,
} from '@etude/domain/ports/memory';
import type { AppliedWrites } from './layers/applied-writes.js';
import type { MemoryUpkeep } from './layers/memory-upkeep.js';
import type { RecordKind, RecordStore } from './record-store.js';

/** A search as callers may narrow it; what is absent does not narrow. */
export interface LayerQuery extends SearchQuery {
  readonly kinds?: readonly RecordKind[];
  /** Importance, confidence or success rate, by layer. */
  readonly worthMin?: number;
  readonly category?: string;
  /** ms since 1970, inclusive. */
  readonly createdSince?: number;
  /** Also what was archived. */
  readonly archived?: boolean;
  /** Asks the chat model to order the best ones; a failure leaves the order as it was and is said in `explanation`. */
  readonly rerank?: boolean;
}

export interface EpisodicLayer extends EpisodicMemory {
  search(scope: ReadScope, query: LayerQuery): Promise<readonly MemoryHit[]>;
  get(scope: ReadScope, id: string): Promise<Episode | Transition | null>;
  /** Episodes in which the skill was used, newest first. */
  bySkill(scope: ReadScope, skill: string, limit: number): Promise<readonly Episode[]>;
}

export type FactOutcome = 'added' | 'reinforced' | 'superseded' | 'unchanged';

export interface StoredFact {
  readonly fact: Fact;
  /** `superseded`: it took the place of others, named in `replaced`. `unchanged`: this write was stored before. */
  readonly outcome: FactOutcome;
  readonly replaced: readonly string[];
}

export interface SemanticLayer extends SemanticMemory {
  /** Facts, summaries, reflections and chunks of documents; without `kinds`, all of them. */
  search(scope: ReadScope, query: LayerQuery): Promise<readonly MemoryHit[]>;
  /** Each `writeId` once. The same words reinforce; a new fact of the same subject supersedes. */
  store(writeId: string, fact: Fact): Promise<StoredFact>;
  get(scope: ReadScope, id: string): Promise<Fact | null>;
  /** The fact and those that it took the place of, newest first. */
  history(scope: ReadScope, id: string): Promise<readonly Fact[]>;
  /** @throws EtudeError NOT_FOUND */
  update(scope: ReadScope, id: string, change: { readonly text?: string; readonly confidence?: number }): Promise<Fact>;
  /** Adds one to each, behind the caller's back; lost counts are no error. */
  countAccess(scope: ReadScope, ids: readonly string[]): Promise<void>;
  /** The same document again changes nothing; another content under its name replaces the old one, chunk by chunk. */
  storeDocument(
    document: DocumentRecord,
    chunks: readonly DocumentChunk[],
    signal?: AbortSignal,
  ): Promise<'added' | 'replaced' | 'unchanged'>;
  documents(scope: ReadScope, page: { readonly limit: number; readonly afterKey?: string }): Promise<readonly DocumentRecord[]>;
  /** As it is stored, where nothing of it is missing and nothing of an older content left; else null. */
  wholeDocument(scope: Scope, id: string): Promise<DocumentRecord | null>;
  removeDocument(scope: ReadScope, id: string): Promise<boolean>;
  /** Brings together facts that were written in the same instant and did not see each other. `since`: only those made from then on. */
  mergeDuplicates(
    scope: ReadScope,
    options?: { readonly since?: number; readonly signal?: AbortSignal },
  ): Promise<{ readonly looked: number; readonly merged: number; readonly superseded: number }>;
  /** Writes what waits to be counted. */
  close(): Promise<void>;
}

export interface ProceduralLayer extends ProceduralMemory {
  /** `worthMin`: lowest success rate. */
  search(scope: ReadScope, query: LayerQuery): ReturnType<ProceduralMemory['search']>;
  /**
   * A procedure in words, in use at once. Other words under its name are the next version, which goes on with its counts; where anybody
   * decided on what has that name, and for words that are marked in the tenant, it is a candidate (`toldProcedure`). Starts at a success
   * rate of 0.5.
   * @throws EtudeError FAILED_PRECONDITION for the name of a skill with code, for words that somebody took out of use, and for a new name
   *   beyond `namesMax` (see `StoreSkillOptions`)
   */
  storeProcedure(
    writeId: string,
    scope: Skill['scope'],
    name: string,
    prompt: string,
    options?: Pick<StoreSkillOptions, 'namesMax' | 'by'>,
  ): Promise<Skill>;
}

export interface RecallRequest {
  readonly context: string;
  /** How many of each at most; defaults 5, 3, 3. */
  readonly facts?: number;
  readonly experiences?: number;
  readonly procedures?: number;
  /** Tokens of all texts together; default 2,000. */
  readonly tokensMax?: number;
  /** Calibrated similarity below which only telling words keep a memory; default 0.3. 0 keeps all that is found. */
  readonly similarityMin?: number;
}

export interface Recollection {
  readonly facts: readonly MemoryHit[];
  readonly experiences: readonly MemoryHit[];
  readonly procedures: readonly MemoryHit[];
  readonly tokens: number;
  /** Layers that could not be searched; only where the caller asked for a partial answer. */
  readonly missing: readonly MemoryLayer[];
}

/** A record of any kind, as an export has it. `id` is what its hits are called. */
export interface PlainRecord {
  readonly id: string;
  readonly layer: MemoryLayer;
  readonly kind: RecordKind;
  readonly scope: Scope;
  /** ms since 1970 */
  readonly createdAt: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What a service opens: the three layers and their upkeep over one store. */
export interface Memory {
  readonly store: RecordStore;
  readonly episodic: EpisodicLayer;
  readonly semantic: SemanticLayer;
  readonly procedural: ProceduralLayer;
  readonly appliedWrites: AppliedWrites;
  readonly upkeep: MemoryUpkeep;
  /** Any record that search can find, by the id of its hit; null where there is none. Skills are found by who reads them (`findSkill`). */
  get(scope: ReadScope, layer: Exclude<MemoryLayer, 'procedural'>, id: string): Promise<PlainRecord | null>;
  /** No two alike, within a budget of tokens, with what each comes from. `partial`: a layer that fails is named, not thrown. */
  recall(scope: ReadScope, request: RecallRequest, options?: { readonly partial?: boolean }): Promise<Recollection>;
  /** For readiness. @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
  check(): Promise<void>;
  close(): Promise<void>;
}
