import type { episodicLayer } from './layers/episodic-layer.js';
import type { proceduralLayer } from './layers/procedural-layer.js';
import type { appliedWrites } from './layers/repeats.js';
import type { semanticLayer } from './layers/semantic-layer.js';
import type { RecordKind, RecordStore } from './record-store.js';
import type { recordUpkeep } from './upkeep/record-upkeep.js';
import type { Fact, Scope, Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { MemoryHit, ReadScope, SearchQuery } from '@etude/domain/ports/memory';

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

export type FactOutcome = 'added' | 'reinforced' | 'superseded' | 'unchanged';

export interface StoredFact {
  readonly fact: Fact;
  /** `superseded`: it took the place of others, named in `replaced`. `unchanged`: this write was stored before. */
  readonly outcome: FactOutcome;
  readonly replaced: readonly string[];
}

export type EpisodicLayer = ReturnType<typeof episodicLayer>;
export type SemanticLayer = ReturnType<typeof semanticLayer>;
export type ProceduralLayer = ReturnType<typeof proceduralLayer>;
/** Applies what comes out of the outbox, each write once, also when a crash cut it in the middle. */
export type AppliedWrites = ReturnType<typeof appliedWrites>;
/** Work on the memory of an owner, or on all of it. Every call can be repeated after a crash. */
export type MemoryUpkeep = ReturnType<typeof recordUpkeep>;

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

export interface MemoryStats {
  readonly adapter: string;
  readonly model: { readonly name: string; readonly dimension: number };
  /** Records by layer and kind; archived ones are counted in both. */
  readonly layers: ReadonlyArray<{ layer: MemoryLayer; kind: RecordKind; records: number; archived: number }>;
  /** Of the whole store, all tenants; null where the database does not tell. */
  readonly diskBytes: number | null;
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

export interface StoreReport {
  /** What was looked at, by name: records, vectors, texts, parts. */
  readonly checked: Readonly<Record<string, number>>;
  /** What was wrong and is mended now, one sentence each; at most 100. */
  readonly repaired: readonly string[];
  /** What was wrong and is still. */
  readonly problems: readonly string[];
}

export interface ReembedReport {
  readonly embedded: number;
  readonly left: number;
  readonly state: 'running' | 'ready' | 'finished';
}
