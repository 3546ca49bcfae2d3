import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';

/** What records are looked up by, besides their key; every one is indexed. Values match exactly, and nothing in them is an operator. */
export const RECORD_FIELDS = [
  'id',
  'rollout',
  'name',
  'status',
  'digest',
  'fingerprint',
  'category',
  'skill',
  'document',
  'subject',
] as const;
export type RecordField = (typeof RECORD_FIELDS)[number];
export type Fields = Readonly<Partial<Record<RecordField, string | readonly string[]>>>;

export const RECORD_KINDS = {
  episodic: ['transition', 'episode', 'applied'],
  semantic: ['fact', 'summary', 'reflection', 'document', 'chunk', 'applied', 'erasure'],
  procedural: ['skill', 'applied'],
} as const;
export type RecordKind = (typeof RECORD_KINDS)[MemoryLayer][number];

/** One record of a layer, whole. What it means is known by the layer that wrote it; a store keeps, finds and guards it. */
export interface MemoryRecord {
  readonly layer: MemoryLayer;
  readonly kind: RecordKind;
  /** Unique within tenant, layer and kind; made from content. 1 to 1,024 characters, any. */
  readonly key: string;
  readonly scope: Scope;
  /** ms since 1970 */
  readonly createdAt: number;
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** Whether search finds it: false for what is archived, superseded, not active, or never searched for. */
  readonly shown: boolean;
  readonly fields: Fields;
  /** What a hit shows. */
  readonly title: string;
  readonly text: string;
  readonly sources: readonly string[];
  /** JSON of the record; any length, given back byte for byte. */
  readonly body: string;
}

/** A record as it is stored. `revision` is 1 after the insert and one more after each change. */
export interface StoredRecord extends MemoryRecord {
  readonly revision: number;
}

/** Searchable texts of one record, at most. */
export const RECORD_TEXTS_MAX = 1_024;

/** A searchable text of a record with its vector; null where the text has no direction, such as one without a word in it. */
export interface IndexedText {
  readonly text: string;
  readonly vector: Float32Array | null;
}

export type Change =
  /** Nothing where the key is taken (answered false); the changes behind it go on. */
  | { readonly do: 'insert'; readonly record: MemoryRecord; readonly indexed: readonly IndexedText[] }
  /** Record, texts and vectors. Vectors of other models are dropped with the old texts. */
  | { readonly do: 'replace'; readonly record: MemoryRecord; readonly indexed: readonly IndexedText[]; readonly revision: number }
  /** Everything but texts and vectors. */
  | { readonly do: 'update'; readonly record: MemoryRecord; readonly revision: number };

/** Owned by exactly these. Absent: any; `user: null`: nobody in particular. Not a reader's view: see `ReadScope` for that. */
export interface Owners {
  readonly tenant: string;
  readonly agent?: string;
  readonly user?: string | null;
}

export interface RecordFilter {
  readonly kinds?: readonly RecordKind[];
  /** All of them; of several values of one field, any. */
  readonly where?: Fields;
  readonly shown?: boolean;
  /** ms since 1970, inclusive. */
  readonly createdSince?: number;
  /** Exclusive. */
  readonly createdBefore?: number;
  readonly worthMin?: number;
  /** Name of a model: only records with searchable words that have no vectors of it, nor the note that their texts have none. */
  readonly withoutVectorsOf?: string;
}

export interface StoreQuery extends RecordFilter {
  /** Default true. False: only those that search does not show, such as what was archived; never both in one search. */
  readonly shown?: boolean;
  /** Of the reading model; null: only words are searched. */
  readonly vector: Float32Array | null;
  /** Its words are looked for; nothing in it is syntax. Empty: only vectors are searched. */
  readonly text: string;
  /** Places in each of the two lists. */
  readonly limit: number;
}

/** A record that was found, as ranking needs it; `load` gives the rest. */
export interface Candidate {
  readonly kind: RecordKind;
  readonly key: string;
  readonly createdAt: number;
  readonly worth: number;
  /** The cosine of the closest vector; 0 for a record without vectors. Every candidate of both lists has it. */
  readonly cosine: number;
  /** 0 for a record that the words did not find. */
  readonly bm25: number;
}

/** Both lists ordered, best first; equal values by `createdAt`, newest first, then by key. */
export interface Candidates {
  readonly dense: readonly Candidate[];
  readonly words: readonly Candidate[];
}

/** `name` and `dimension` are those of the embedder's profile. `building`: `reembed` is filling it; not searched by default. */
export interface VectorModel {
  readonly name: string;
  readonly dimension: number;
  readonly state: 'ready' | 'building';
}

/**
 * Keeps records of the three layers with their vectors and words. One adapter per database; all meaning is above it, in `layers/`.
 *
 * Every call is inside one tenant: each adapter adds it in one class that cannot be gone round and fails closed
 * (@throws EtudeError TENANT_MISSING, PERMISSION_DENIED for a record of another tenant). A write that was answered is read by
 * every later call, of any process.
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL, MEMORY_VERSION, EMBEDDING_LENGTH_WRONG (also for NaN)
 * Not in it: embedding, ranking, what a fact is.
 */
export interface RecordStore {
  /** "sqlite" or "qdrant", for messages and figures. */
  readonly name: string;

  /**
   * Applies changes in their order and says of each whether it took place.
   *
   * A `replace` or `update` whose revision is no longer the stored one (or whose record is gone: it is never brought back) is
   * answered false, and so is everything behind it. A store with transactions applies nothing then; one without may have
   * applied what stood before, and after a crash any beginning of the list. So order them such that a repeat finishes them.
   * Each single change is all or nothing everywhere.
   */
  write(tenant: string, changes: readonly Change[]): Promise<readonly boolean[]>;

  /** The records with these keys that the reader sees, in the order of the keys. */
  load(scope: ReadScope, layer: MemoryLayer, kind: RecordKind, keys: readonly string[]): Promise<readonly StoredRecord[]>;
  /** By `createdAt`, newest first, then by key descending; or by key (code points) behind `afterKey`. */
  find(
    scope: ReadScope,
    layer: MemoryLayer,
    filter: RecordFilter,
    page: { readonly order: 'newest' | 'key'; readonly limit: number; readonly afterKey?: string },
  ): Promise<readonly StoredRecord[]>;
  search(scope: ReadScope, layer: MemoryLayer, query: StoreQuery): Promise<Candidates>;

  /** Every record of these owners, each once, in no order, a page at a time. A record that is written meanwhile may be missing. */
  each(owners: Owners, layer: MemoryLayer, filter: RecordFilter): AsyncIterable<readonly StoredRecord[]>;
  count(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number>;
  /** Records with their texts, vectors, words and every other trace. Answers how many records. */
  remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number>;
  /** Removes what the database keeps of deleted records: free pages, logs, segments. Answers what it did, one sentence each. */
  purge(): Promise<readonly string[]>;

  /** Tenants that have records, by name. For maintenance of the whole store. */
  tenants(): Promise<readonly string[]>;
  models(): Promise<readonly VectorModel[]>;
  /** Adds one that is building; nothing where it is there. @throws EtudeError MEMORY_VERSION for another dimension */
  addModel(model: StoreOptions['model']): Promise<void>;
  setModelReady(name: string): Promise<void>;
  /** With all its vectors. @throws EtudeError FAILED_PRECONDITION for the last one that is ready */
  dropModel(name: string): Promise<void>;
  /** One vector per searchable text, in their order. False where the record is no longer at that revision. */
  setVectors(
    tenant: string,
    record: Pick<StoredRecord, 'layer' | 'kind' | 'key' | 'revision'>,
    model: string,
    vectors: ReadonlyArray<Float32Array | null>,
  ): Promise<boolean>;

  /** What another program or a broken disk has damaged, one sentence each. */
  damage(): Promise<readonly string[]>;
  /** null where the database does not tell. */
  diskBytes(): number | null;
  /** For readiness. */
  check(): Promise<void>;
  close(): void | Promise<void>;
}

/** Opens a store for one reading and writing model. */
export interface StoreOptions {
  /** Vectors that are written and searched. Another than the store has is refused with MEMORY_VERSION and the way out. */
  readonly model: { readonly name: string; readonly dimension: number };
}
