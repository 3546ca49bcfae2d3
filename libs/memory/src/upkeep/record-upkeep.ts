import type { ArchivePolicy, ArchiveReport, ImportReport, MemoryStats, MemoryUpkeep, ReembedReport } from '../memory.js';
import type { Owners, RecordStore, StoreReport } from '../record-store.js';
import { archiveRecords, memoryStats, restoreRecords } from './archive-records.js';
import { type EraseOptions, eraseOwned, findOwned, newFrom } from './erase-owned.js';
import { forbid } from './erasure-marks.js';
import { type ExportOptions, exportRecords } from './export-lines.js';
import { type ImportOptions, importRecords } from './import-lines.js';
import { reconcileRecords } from './reconcile-records.js';
import { type ReembedOptions, reembedRecords } from './reembed-records.js';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';

export interface UpkeepDeps {
  /** A `guardedStore`, as the layers have it: imports are writes too. */
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  /** Absent: an import looks at what a proof is for, and not at its signature. */
  readonly proofChecker?: ProofChecker;
}

/** `MemoryUpkeep` over any record store. */
export class RecordUpkeep implements MemoryUpkeep {
  readonly #deps: UpkeepDeps;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
  }

  stats(tenant: string): Promise<MemoryStats> {
    return memoryStats(this.#deps.store, this.#deps.embedder, tenant);
  }

  archive(owners: Owners, policy: ArchivePolicy, options: { readonly dryRun: boolean }, signal?: AbortSignal): Promise<ArchiveReport> {
    return archiveRecords(this.#deps.store, this.#deps.clock, owners, policy, options, signal);
  }

  restore(owners: Owners, ids?: readonly string[]): Promise<number> {
    return restoreRecords(this.#deps.store, owners, ids);
  }

  exportLines(owners: Owners, options: ExportOptions = {}): AsyncIterable<string> {
    return exportRecords(this.#deps.store, owners, options);
  }

  importLines(tenant: string, lines: AsyncIterable<string>, options: ImportOptions): Promise<ImportReport> {
    return importRecords(this.#deps, tenant, lines, options);
  }

  forbid(owners: Owners, at: number): Promise<void> {
    return forbid(this.#deps.store, owners, at);
  }

  newFrom(owners: Owners): Promise<number> {
    return newFrom(this.#deps.store, this.#deps.clock, owners);
  }

  async erase(owners: Owners, options: EraseOptions = {}): Promise<Readonly<Record<string, number>>> {
    const { store, clock } = this.#deps;
    const removed = await eraseOwned(store, clock, owners, options);
    for (const note of await store.purge()) options.onNote?.(note);
    return removed;
  }

  findErased(owners: Owners, before?: number): Promise<Readonly<Record<string, number>>> {
    return findOwned(this.#deps.store, this.#deps.clock, owners, before);
  }

  reembed(to: Embedder, options: ReembedOptions): Promise<ReembedReport> {
    return reembedRecords(this.#deps.store, to, options);
  }

  dropModel(name: string): Promise<void> {
    return this.#deps.store.dropModel(name);
  }

  reconcile(): Promise<StoreReport> {
    return reconcileRecords(this.#deps);
  }
}
