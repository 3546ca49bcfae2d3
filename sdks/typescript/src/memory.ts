import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Calls } from './calls.js';
import {
  type ErasureReceipt,
  type ImportDocumentResponse,
  Memory as Service,
  type MemoryHit,
  type MemoryRecord,
  type RecallResponse,
  type StoreFactResponse,
} from './gen/etude/v1/memory_pb.js';

const CHUNK_BYTES = 256 * 1024;

/** The owner of memory. */
export interface MemoryOwner {
  readonly agent?: string;
  readonly user?: string;
}

export interface FactOptions extends MemoryOwner {
  readonly category?: string;
  /** What the fact is about. */
  readonly subject?: string;
  readonly confidence?: number;
}

export interface MemorySearch extends MemoryOwner {
  /** "episodic", "semantic", "procedural". */
  readonly layers?: readonly string[];
  readonly kinds?: readonly string[];
  readonly limit?: number;
  /** Whether hits explain the parts of their scores. */
  readonly explain?: boolean;
}

/** Splits data into parts of at most 256 KiB. */
export function* chunksOf(data: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < data.length; at += CHUNK_BYTES) yield data.subarray(at, at + CHUNK_BYTES);
}

/** Memory: facts, episodes, documents and skills. Each record belongs to an agent, and to a user if one is given. */
export class Memory {
  constructor(private readonly calls: Calls) {}

  /** Stores a fact. `outcome` says whether the fact was new. `replaced` lists the facts that the new fact replaced. */
  async remember(text: string, options: FactOptions = {}): Promise<StoreFactResponse> {
    return this.calls.unary(Service.method.storeFact, { text, source: 'told', ...options });
  }

  /** Facts, experiences and procedures that help with a task, with at most `tokensMax` tokens in total. */
  async recall(context: string, options: MemoryOwner & { readonly tokensMax?: number } = {}): Promise<RecallResponse> {
    return this.calls.unary(Service.method.recall, { context, ...options });
  }

  /** The memories that are most relevant to the query, best first. */
  async search(query: string, { layers = [], kinds = [], ...rest }: MemorySearch = {}): Promise<MemoryHit[]> {
    return (await this.calls.unary(Service.method.searchMemory, { query, layers: [...layers], kinds: [...kinds], ...rest })).hits;
  }

  async get(id: string, options: MemoryOwner & { readonly layer?: string } = {}): Promise<MemoryRecord> {
    return this.calls.unary(Service.method.getMemory, { id, ...options });
  }

  /** All memories of a kind, such as "fact". */
  list(kind: string, owner: MemoryOwner = {}) {
    return this.calls.pages(Service.method.listMemory, { kind, ...owner }, ({ records }) => records);
  }

  /** Deletes a record and its parts. */
  async forget(id: string, { layer = 'semantic', ...owner }: MemoryOwner & { readonly layer?: string } = {}): Promise<ErasureReceipt> {
    return this.calls.unary(Service.method.deleteMemory, { id, layer, ...owner });
  }

  /** Imports a document from a path or from bytes with a name: text, Markdown, HTML or PDF. */
  async importDocument(
    source: string | { readonly name: string; readonly data: Uint8Array },
    options: MemoryOwner & { readonly mediaType?: string } = {},
  ): Promise<ImportDocumentResponse> {
    const { name, data } = typeof source === 'string' ? { name: basename(source), data: await readFile(source) } : source;
    const head = { part: { case: 'head' as const, value: { name, ...options } } };
    const parts = [...chunksOf(data)].map((chunk) => ({ part: { case: 'data' as const, value: chunk } }));
    return this.calls.upload(Service.method.importDocument, [head, ...parts]);
  }

  /** Erases everything about a user, and resolves with a receipt. */
  async eraseUser(user: string): Promise<ErasureReceipt> {
    return this.calls.unary(Service.method.eraseMemory, { whose: { case: 'user', value: user } });
  }
}
