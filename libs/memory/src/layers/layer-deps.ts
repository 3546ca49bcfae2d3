import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ChatModel } from '@etude/domain/ports/model';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import type { RecordStore } from '../record-store.js';

/** What every layer is made of. */
export interface LayerDeps {
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  /** Orders the best hits where a search asks for it. */
  readonly chatModel?: ChatModel;
  /** Believes signatures under the proofs of skills, before they become what may be used; absent: who runs a skill looks at them. */
  readonly proofChecker?: ProofChecker;
}
