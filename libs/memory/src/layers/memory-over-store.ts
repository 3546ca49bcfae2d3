import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ChatModel } from '@etude/domain/ports/model';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import type { Memory } from '../memory.js';
import type { RecordStore } from '../record-store.js';
import { RecordEpisodicLayer } from './episodic-layer.js';
import { recallMemory } from './memory-recall.js';
import { getRecord } from './plain-record.js';
import { RecordProceduralLayer } from './procedural-layer.js';
import { RecordAppliedWrites } from './record-applied-writes.js';
import { sharedEmbedding } from './shared-embedding.js';
import { RecordSemanticLayer, type SemanticOptions } from './semantic-layer.js';
import { guardedStore } from './upkeep/guarded-store.js';
import { RecordUpkeep } from './upkeep/record-upkeep.js';

export interface MemoryDeps extends SemanticOptions {
  /** Its model and dimension are kept with the vectors; another one is refused later. */
  readonly embedder: Embedder;
  /** How old a record is, for the ranking; the system's by default. */
  readonly clock?: Clock;
  /** Orders the best hits where a search asks for it. */
  readonly chatModel?: ChatModel;
  /** See `LayerDeps`. */
  readonly proofChecker?: ProofChecker;
}

/** The three layers and their upkeep over one store, which is closed with them. */
export function memoryOver(
  bare: RecordStore,
  { embedder, clock = { now: Date.now }, chatModel, proofChecker, ...options }: MemoryDeps,
): Memory {
  const store = guardedStore(bare);
  const deps = {
    store,
    embedder: sharedEmbedding(embedder),
    clock,
    ...(chatModel === undefined ? {} : { chatModel }),
    ...(proofChecker === undefined ? {} : { proofChecker }),
  };
  const episodic = new RecordEpisodicLayer(deps);
  const semantic = new RecordSemanticLayer(deps, options);
  const procedural = new RecordProceduralLayer(deps);
  return {
    store,
    episodic,
    semantic,
    procedural,
    appliedWrites: new RecordAppliedWrites({ store, episodic, procedural }),
    upkeep: new RecordUpkeep(deps),
    get: (scope, layer, id) => getRecord(store, scope, layer, id),
    recall: (scope, request, how) => recallMemory({ episodic, semantic, procedural }, scope, request, how),
    check: () => store.check(),
    async close() {
      await semantic.close();
      await store.close();
    },
  };
}
