import type { ArchivePolicy } from '../memory.js';
import type { Owners, RecordStore } from '../record-store.js';
import { archiveRecords, memoryStats, restoreRecords } from './archive-records.js';
import { eraseOwned, type EraseOptions, findOwned, newFrom } from './erase-owned.js';
import { forbid } from './erasure-marks.js';
import { type ExportOptions, exportRecords } from './export-lines.js';
import { type ImportOptions, importRecords } from './import-lines.js';
import type { CountsByPlace } from './owned-records.js';
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
export function recordUpkeep(deps: UpkeepDeps) {
  const { store, embedder, clock } = deps;
  return {
    stats: (tenant: string) => memoryStats(store, embedder, tenant),
    /** Lowers what retrieval shows, never what is stored. */
    archive: (owners: Owners, policy: ArchivePolicy, options: { readonly dryRun: boolean }, signal?: AbortSignal) =>
      archiveRecords(store, clock, owners, policy, options, signal),
    /** The way back, for all that is archived or for these ids. Answers how many. */
    restore: (owners: Owners, ids?: readonly string[]) => restoreRecords(store, owners, ids),
    /** JSON Lines: a header, then one record per line, lossless, in no order. @throws EtudeError PERMISSION_DENIED, see `ExportOptions` */
    exportLines: (owners: Owners, options?: ExportOptions) => exportRecords(store, owners, options),
    /** Lines of `exportLines`, of any adapter; owners other than `tenant` become it. The same lines again change nothing. */
    importLines: (tenant: string, lines: AsyncIterable<string>, options: ImportOptions) => importRecords(deps, tenant, lines, options),
    /** Writes of these owners that were made before `at` are refused from now on. Durable when it returns. */
    forbid: (owners: Owners, at: number) => forbid(store, owners, at),
    newFrom: (owners: Owners) => newFrom(store, clock, owners),
    /**
     * Removed records by place, such as "memory.semantic.fact"; with each go its vectors, words and parts. Repeats until nothing is found.
     * Asked again with the same `before`, it removes nothing that was made since.
     */
    async erase(owners: Owners, options: EraseOptions): Promise<CountsByPlace> {
      const removed = await eraseOwned(store, clock, owners, options);
      for (const note of await store.purge()) options.onNote?.(note);
      return removed;
    },
    /** Vectors, words and parts without a record are not counted: only a crash leaves any, and `reconcile` removes those. */
    findErased: (owners: Owners, before?: number) => findOwned(store, clock, owners, before),
    reembed: (to: Embedder, options: ReembedOptions) => reembedRecords(store, to, options),
    /** Drops the vectors of a model that no service uses any more. */
    dropModel: (name: string) => store.dropModel(name),
    reconcile: () => reconcileRecords(deps),
  };
}
