import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ChatModel } from '@etude/domain/ports/model';
import type { RecordStore } from '../record-store.js';

/** What every layer is made of. */
export interface LayerDeps {
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  /** Orders the best hits where a search asks for it. */
  readonly chatModel?: ChatModel;
}
