import type { ArchivePolicy } from '../memory.js';
import type { Owners, RecordStore } from '../record-store.js';
import { archiveRecords, memoryStats, restoreRecords } from './archive-records.js';
import { eraseOwned, type EraseOptions, findOwned, newFrom } from './erase-owned.js';
import { type ExportOptions, exportRecords } from './export-lines.js';
import { type ImportOptions, importRecords } from './import-lines.js';
import type { CountsByPlace } from './owned-records.js';
import { reconcileRecords } from './reconcile-records.js';
import { type ReembedOptions, reembedRecords } from './reembed-records.js';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';

export interface UpkeepDeps {
  /** A `guardedStore`, because imports are writes too. */
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  /** Absent: an import checks that a proof is for the skill's content, but not its signature. */
  readonly proofChecker?: ProofChecker;
}

export function recordUpkeep(deps: UpkeepDeps) {
  const { store, embedder, clock } = deps;
  return {
    stats: (tenant: string) => memoryStats(store, embedder, tenant),
    /** Hides records from retrieval. Never removes them. */
    archive: (owners: Owners, policy: ArchivePolicy, options: { readonly dryRun: boolean }, signal?: AbortSignal) =>
      archiveRecords(store, clock, owners, policy, options, signal),
    /** Shows archived records again: all, or those with these ids. Returns how many. */
    restore: (owners: Owners, ids?: readonly string[]) => restoreRecords(store, owners, ids),
    /** JSON Lines: a header, then one record per line, lossless, unordered. @throws EtudeError PERMISSION_DENIED, see `ExportOptions` */
    exportLines: (owners: Owners, options?: ExportOptions) => exportRecords(store, owners, options),
    /** Imports lines of `exportLines` from any adapter and tenant into `tenant`. The same lines again change nothing. */
    importLines: (tenant: string, lines: AsyncIterable<string>, options: ImportOptions) => importRecords(deps, tenant, lines, options),
    newFrom: (owners: Owners) => newFrom(store, clock, owners),
    /**
     * Removes records with their vectors and words until none is found. Returns their numbers by place, such as "memory.semantic.fact". A
     * repeat with the same `before` removes nothing made since.
     */
    async erase(owners: Owners, options: EraseOptions): Promise<CountsByPlace> {
      const removed = await eraseOwned(store, clock, owners, options);
      for (const note of await store.purge()) options.onNote?.(note);
      return removed;
    },
    /** Counts these owners' records made before `before`, or else before their erasure mark. Without either, counts all. */
    findErased: (owners: Owners, before?: number) => findOwned(store, clock, owners, before),
    reembed: (to: Embedder, options: ReembedOptions) => reembedRecords(store, to, options),
    /** Drops the vectors of a model. No service may use it any more. */
    dropModel: (name: string) => store.dropModel(name),
    reconcile: () => reconcileRecords(deps),
  };
}
