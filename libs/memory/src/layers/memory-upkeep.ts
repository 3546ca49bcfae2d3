import type { Scope } from '@etude/contracts/memory';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { MemoryLayer } from '@etude/contracts/task';
import type { EraseOptions } from './upkeep/erase-owned.js';
import type { ExportOptions } from './upkeep/export-lines.js';
import type { ImportOptions } from './upkeep/import-lines.js';
import type { Owners, RecordKind, StoreReport } from '../record-store.js';

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
   * Records that are left, by place, of what was made before `before` (or before the last erasure). Vectors, words and parts without
   * a record are not among them: there are none but after a crash, and `reconcile` finds and removes those.
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
