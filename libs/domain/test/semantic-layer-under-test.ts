import type { DocumentChunk, DocumentRecord, Fact } from '@etude/contracts/memory';
import type { MemoryHit, ReadScope, SearchQuery, SemanticMemory } from '../src/ports/memory.js';

interface Stored {
  readonly fact: Fact;
  readonly outcome: 'added' | 'reinforced' | 'superseded' | 'unchanged';
  readonly replaced: readonly string[];
}

/** The semantic layer as its suite needs it; the real one says more. */
export interface SemanticLayerUnderTest extends SemanticMemory {
  search(
    scope: ReadScope,
    query: SearchQuery & { category?: string; kinds?: readonly ('fact' | 'chunk')[] },
  ): Promise<readonly MemoryHit[]>;
  store(writeId: string, fact: Fact): Promise<Stored>;
  get(scope: ReadScope, id: string): Promise<Fact | null>;
  history(scope: ReadScope, id: string): Promise<readonly Fact[]>;
  update(scope: ReadScope, id: string, change: { text?: string; confidence?: number }): Promise<Fact>;
  countAccess(scope: ReadScope, ids: readonly string[]): Promise<void>;
  storeDocument(
    document: DocumentRecord,
    chunks: readonly DocumentChunk[],
    signal?: AbortSignal,
  ): Promise<'added' | 'replaced' | 'unchanged'>;
  documents(scope: ReadScope, page: { limit: number; afterKey?: string }): Promise<readonly DocumentRecord[]>;
  removeDocument(scope: ReadScope, id: string): Promise<boolean>;
  /** Writes what waits to be counted. */
  close(): Promise<void>;
}
