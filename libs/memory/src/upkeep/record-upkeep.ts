import type { MemoryUpkeep } from '../memory.js';
import type { RecordStore } from '../record-store.js';
import { archiveRecords, memoryStats, restoreRecords } from './archive-records.js';
import { eraseOwned, findOwned, newFrom } from './erase-owned.js';
import { forbid } from './erasure-marks.js';
import { exportRecords } from './export-lines.js';
import { importRecords } from './import-lines.js';
import { reconcileRecords } from './reconcile-records.js';
import { reembedRecords } from './reembed-records.js';
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
export function recordUpkeep(deps: UpkeepDeps): MemoryUpkeep {
  const { store, embedder, clock } = deps;
  return {
    stats: (tenant) => memoryStats(store, embedder, tenant),
    archive: (...args) => archiveRecords(store, clock, ...args),
    restore: (...args) => restoreRecords(store, ...args),
    exportLines: (...args) => exportRecords(store, ...args),
    importLines: (...args) => importRecords(deps, ...args),
    forbid: (...args) => forbid(store, ...args),
    newFrom: (owners) => newFrom(store, clock, owners),
    async erase(owners, options = {}) {
      const removed = await eraseOwned(store, clock, owners, options);
      for (const note of await store.purge()) options.onNote?.(note);
      return removed;
    },
    findErased: (...args) => findOwned(store, clock, ...args),
    reembed: (...args) => reembedRecords(store, ...args),
    dropModel: (name) => store.dropModel(name),
    reconcile: () => reconcileRecords(deps),
  };
}
