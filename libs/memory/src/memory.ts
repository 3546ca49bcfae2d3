import type { Owners, RecordKind, RecordStore, StoreReport } from './record-store.js';
import type { EraseOptions } from './upkeep/erase-owned.js';
import type { ExportOptions } from './upkeep/export-lines.js';
import type { ImportOptions } from './upkeep/import-lines.js';
import type { DocumentChunk, DocumentRecord, Episode, Fact, MemoryWrite, Scope, Skill, Transition } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { Embedder } from '@etude/domain/ports/embedder';
import type {
  EpisodicMemory,
  MemoryHit,
  ProceduralMemory,
  ReadScope,
  SearchQuery,
  SemanticMemory,
  StoreSkillOptions,
} from '@etude/domain/ports/memory';

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
  ): Promise<{ readonly looked: number; readonly merged: number; readonly superseded: number; readonly problems: readonly string[] }>;
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

export interface AppliedWrite {
  /** False: it was applied before, and nothing changed. */
  readonly applied: boolean;
  /** Of a write of kind `skill`: as it is stored, also when it was applied before. */
  readonly skill: Skill | null;
}

/** Applies what comes out of the outbox, each write once, also when a crash cut it in the middle. */
export interface AppliedWrites {
  /**
   * @throws EtudeError PERMISSION_DENIED for a record of another tenant; NOT_FOUND for a use of an unknown skill; FAILED_PRECONDITION for a
   *   skill of a new name beyond `namesMax`
   */
  apply(tenant: string, writeId: string, write: MemoryWrite, options?: Pick<StoreSkillOptions, 'namesMax'>): Promise<AppliedWrite>;
  wasApplied(tenant: string, writeId: string): Promise<boolean>;
}

export interface MemoryStats {
  readonly adapter: string;
  readonly model: { readonly name: string; readonly dimension: number };
  /** Records by layer and kind; archived ones are counted in both. */
  readonly layers: ReadonlyArray<{ layer: MemoryLayer; kind: RecordKind; records: number; archived: number }>;
  /** Of the whole store, all tenants; null where the database does not tell. */
  readonly diskBytes: number | null;
  readonly memoryBytes: number | null;
}

export interface ArchivePolicy {
  /** Archives what scores below, 0 to 1; see `forgettingScore`. */
  readonly scoreMax: number;
  readonly layers?: readonly MemoryLayer[];
  /** Never younger ones, in days; default 30. */
  readonly olderThanDays?: number;
}

export interface ArchiveReport {
  readonly looked: number;
  readonly archived: number;
  /** The first of them, lowest score first, at most 100. */
  readonly examples: ReadonlyArray<{ layer: MemoryLayer; scope: Scope; id: string; title: string; score: number }>;
}

export interface Progress {
  readonly done: number;
  readonly total: number | null;
}

export interface ImportReport {
  readonly lines: number;
  readonly added: number;
  /** Were there already. */
  readonly unchanged: number;
  /** The first of them, at most 100; such lines changed nothing. */
  readonly refused: ReadonlyArray<{ line: number; reason: string }>;
}

export interface ReembedReport {
  readonly embedded: number;
  readonly left: number;
  readonly state: 'running' | 'ready' | 'finished';
}

/** What is done to memory as a whole, or to what one owner has in it. Every act can be repeated after a crash. */
export interface MemoryUpkeep {
  stats(tenant: string): Promise<MemoryStats>;
  /** Lowers what retrieval shows, never what is stored. */
  archive(owners: Owners, policy: ArchivePolicy, options: { readonly dryRun: boolean }, signal?: AbortSignal): Promise<ArchiveReport>;
  /** The way back, for all that is archived or for these ids. Answers how many. */
  restore(owners: Owners, ids?: readonly string[]): Promise<number>;
  /** JSON Lines: a header, then one record per line, lossless, in no order. @throws EtudeError PERMISSION_DENIED, see `ExportOptions` */
  exportLines(owners: Owners, options?: ExportOptions): AsyncIterable<string>;
  /** Lines of `exportLines`, of any adapter; owners other than `tenant` become it. The same lines again change nothing. */
  importLines(tenant: string, lines: AsyncIterable<string>, options: ImportOptions): Promise<ImportReport>;
  /** Writes of these owners that were made before `at` are refused from now on. Durable when it returns. */
  forbid(owners: Owners, at: number): Promise<void>;
  /** From when on (ms since 1970) what these owners make is new to an erasure that begins now. */
  newFrom(owners: Owners): Promise<number>;
  /**
   * Removed records by place, such as "memory.semantic.fact"; with each go its vectors, words and parts. Repeats until nothing is found.
   * Asked again with the same `before`, it removes nothing that was made since.
   */
  erase(owners: Owners, options?: EraseOptions): Promise<Readonly<Record<string, number>>>;
  /**
   * Records made before `before` (or before the last erasure) that are left, by place. Vectors, words and parts without a record are
   * not counted: only a crash leaves any, and `reconcile` removes those.
   */
  findErased(owners: Owners, before?: number): Promise<Readonly<Record<string, number>>>;
  /**
   * Fills the vectors of another model, for all tenants, while reads and writes go on; starts where it was stopped. `ready`: none
   * is missing, services may be started with it. Runs again (or goes on with `follow`) for what services of the old model write.
   */
  reembed(
    to: Embedder,
    options: { readonly onProgress?: (progress: Progress) => void; readonly signal?: AbortSignal },
  ): Promise<ReembedReport>;
  /** Drops the vectors of a model that no service uses any more. */
  dropModel(name: string): Promise<void>;
  reconcile(): Promise<StoreReport>;
}
