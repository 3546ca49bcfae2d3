import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { type ReadScope, requireScope } from '@etude/domain/ports/memory';

/** Indexed fields by which records can be looked up, besides the key. Values are compared exactly and never act as operators. */
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
  'archived',
  'source',
] as const;
export type RecordField = (typeof RECORD_FIELDS)[number];
export type Fields = Readonly<Partial<Record<RecordField, string | readonly string[]>>>;

export const RECORD_KINDS = {
  episodic: ['transition', 'episode', 'applied', 'shows', 'unit'],
  semantic: ['fact', 'summary', 'reflection', 'document', 'chunk', 'applied', 'erasure', 'conversation', 'turn', 'shows'],
  procedural: ['skill', 'applied', 'shows'],
} as const;
export const LAYERS = ['episodic', 'semantic', 'procedural'] as const satisfies readonly MemoryLayer[];
export type RecordKind = (typeof RECORD_KINDS)[MemoryLayer][number];

/** One record of a layer. The layer knows what the record means. The store keeps, finds and protects it. */
export interface MemoryRecord {
  readonly layer: MemoryLayer;
  readonly kind: RecordKind;
  /** Unique within tenant, layer and kind; derived from content. 1 to 1,024 characters of any kind. */
  readonly key: string;
  readonly scope: Scope;
  /** ms since 1970 */
  readonly createdAt: number;
  /** 0 to 1: importance (episodic), confidence (semantic) or success rate (procedural). */
  readonly worth: number;
  /** Whether search finds it. False for archived, superseded and inactive records, and for kinds that are never searched. */
  readonly shown: boolean;
  readonly fields: Fields;
  /** Title, text and sources are shown in hits. */
  readonly title: string;
  readonly text: string;
  readonly sources: readonly string[];
  /** The record as JSON of any length. It is returned byte for byte. */
  readonly body: string;
}

/** A stored record. `revision` is 1 after the insert, and each change adds one. */
export interface StoredRecord extends MemoryRecord {
  readonly revision: number;
}

export const RECORD_TEXTS_MAX = 1_024;

/** A searchable text with its vector. The vector is null if the embedder returned only zeros, for example for a text without words. */
export interface IndexedText {
  readonly text: string;
  readonly vector: Float32Array | null;
}

export type Change =
  /** Inserts the record. If the key is taken, the answer is false, and later changes are still applied. */
  | { readonly do: 'insert'; readonly record: MemoryRecord; readonly indexed: readonly IndexedText[] }
  /** Replaces record, texts and vectors. Vectors of other models are dropped with the old texts. */
  | { readonly do: 'replace'; readonly record: MemoryRecord; readonly indexed: readonly IndexedText[]; readonly revision: number }
  /** Changes everything but texts and vectors. */
  | { readonly do: 'update'; readonly record: MemoryRecord; readonly revision: number };

/** Owners of records. Without `agent` or `user`, any matches. `user: null`: only records without a user. For a reader's view use `ReadScope`. */
export interface Owners {
  readonly tenant: string;
  readonly agent?: string;
  readonly user?: string | null;
}

export interface RecordFilter {
  readonly kinds?: readonly RecordKind[] | undefined;
  readonly keys?: readonly string[];
  /** All fields must match. A list of values matches any of them. */
  readonly where?: Fields | undefined;
  readonly shown?: boolean;
  /** Inclusive, in ms since 1970. */
  readonly createdSince?: number | undefined;
  /** Exclusive, in ms since 1970. */
  readonly createdBefore?: number;
  readonly worthMin?: number | undefined;
  /** Name of a model. Selects records with searchable words that this model hasn't embedded yet. */
  readonly withoutVectorsOf?: string;
}

export interface FindPage {
  readonly order: 'newest' | 'key';
  readonly limit: number;
  readonly afterKey?: string | undefined;
  readonly after?: Pick<MemoryRecord, 'createdAt' | 'key'> | undefined;
}

export interface StoreQuery extends Omit<RecordFilter, 'keys'> {
  /** Default true. False: only hidden records, such as archived ones. No search covers both shown and hidden records. */
  readonly shown?: boolean;
  /** The query's vector by the store's model. null: only words are searched. */
  readonly vector: Float32Array | null;
  /** The words to search for, without any syntax. Empty: only vectors are searched. */
  readonly text: string;
  /** How many records to find by vectors, and how many by words. */
  readonly limit: number;
}

/** A found record, with the fields that ranking needs. `load` returns the rest. */
export interface Candidate {
  readonly kind: RecordKind;
  readonly key: string;
  readonly createdAt: number;
  readonly worth: number;
  /** The cosine of the record's closest vector. 0 for a record without vectors. */
  readonly cosine: number;
  /** 0 for a record that is not among the `limit` best by words. */
  readonly bm25: number;
}

/** An embedding model, as the embedder's profile describes it. A store with vectors of another model refuses to open (MEMORY_VERSION). */
export interface Model {
  readonly name: string;
  readonly dimension: number;
}

/** `building`: `reembed` hasn't made the vectors of all records yet, so the model can't be used for searches. */
export interface VectorModel extends Model {
  readonly state: 'ready' | 'building';
}

export interface WriteOptions {
  readonly unsynced?: boolean;
}

/**
 * Stores records of the three layers with their vectors and words. There is one adapter per database.
 *
 * Every call is within one tenant. Each adapter adds the tenant in one class that can't be bypassed. After a write was answered, every later call of
 * any process sees it.
 * @throws EtudeError TENANT_MISSING, PERMISSION_DENIED (record of another tenant), MEMORY_UNAVAILABLE, MEMORY_FULL, MEMORY_VERSION,
 *   EMBEDDING_LENGTH_WRONG (also for NaN)
 * Not part of this port: embedding, ranking, the meaning of a record.
 */
export interface RecordStore {
  /** "sqlite" or "qdrant", for messages and metrics. */
  readonly name: string;

  /**
   * Applies changes in order and returns for each whether it took place.
   *
   * A `replace` or `update` fails if the stored revision differs or the record is gone. Then its answer and all later answers are false.
   * SQLite then rolls back the whole list. Qdrant has no transactions: it keeps the changes before the failed one, and a crash may leave
   * only the first changes. So put changes in an order in which a repeat completes them. Each single change is atomic in both databases.
   *
   * With `unsynced`, the call doesn't wait for the disk. A power failure may then undo these changes, but no earlier changes. The next
   * write without `unsynced`, by any process, puts them on disk too.
   */
  write(tenant: string, changes: readonly Change[], how?: WriteOptions): Promise<readonly boolean[]>;

  /** The records with these keys that the reader sees, in the order of `keys`. */
  load(scope: ReadScope, layer: MemoryLayer, kind: RecordKind, keys: readonly string[]): Promise<readonly StoredRecord[]>;
  /**
   * `newest`: by `createdAt`, newest first, then by key descending, starting after `after`. `key`: by key in code point order, starting
   * after `afterKey`.
   */
  find(scope: ReadScope, layer: MemoryLayer, filter: RecordFilter, page: FindPage): Promise<readonly StoredRecord[]>;
  /** The `limit` records with the closest vectors and the `limit` with the highest BM25, each record once; see `bestCandidates`. */
  search(scope: ReadScope, layer: MemoryLayer, query: StoreQuery): Promise<readonly Candidate[]>;

  /** Every record of these owners once, in no order, page by page. Records written meanwhile may be missing. */
  each(owners: Owners, layer: MemoryLayer, filter: RecordFilter): AsyncIterable<readonly StoredRecord[]>;
  count(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number>;
  /** Removes records with their texts, vectors, words and every other trace. Returns the number of records. */
  remove(owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number>;
  /** Purges remains of deleted records from free pages, logs and segments. Returns one sentence for each step it took. */
  purge(): Promise<readonly string[]>;

  /** Tenants that have records, sorted. Only for maintenance of the whole store. */
  tenants(): Promise<readonly string[]>;
  models(): Promise<readonly VectorModel[]>;
  /** Adds a model in state `building`, unless it exists. */
  addModel(model: Model): Promise<void>;
  setModelReady(name: string): Promise<void>;
  /** Drops a model and its vectors. Call it once no service uses the model. */
  dropModel(name: string): Promise<void>;
  /** Stores one vector per searchable text, in their order. Returns false if the record is no longer at that revision. */
  setVectors(
    tenant: string,
    record: Pick<StoredRecord, 'layer' | 'kind' | 'key' | 'revision'>,
    model: string,
    vectors: ReadonlyArray<Float32Array | null>,
  ): Promise<boolean>;

  /** Looks for damage by other programs or a broken disk. Returns one sentence for each finding. */
  damage(): Promise<readonly string[]>;
  /** Size of the database's files. null for Qdrant, which doesn't report it. */
  diskBytes(): number | null;
  check(): Promise<void>;
  close(): void | Promise<void>;
}

export interface TenantView {
  readonly tenant: string;
  /** null: any agent. */
  readonly agents: readonly string[] | null;
  /** null: any user. A null in the list means records without a user. */
  readonly users: ReadonlyArray<string | null> | null;
}

/** A reader's view. A user sees their own records and those without a user. @throws EtudeError TENANT_MISSING */
export function seenBy(scope: ReadScope): TenantView {
  const { tenant, agent, user, also = [] } = requireScope(scope);
  return { tenant, agents: agent === null ? null : [agent, ...also], users: typeof user === 'string' ? [null, user] : null };
}

/** A view of exactly these owners' records. @throws EtudeError TENANT_MISSING */
export function ownedBy(owners: Owners): TenantView {
  const { tenant } = requireScope({ tenant: owners?.tenant, agent: null });
  const { agent, user } = owners;
  return { tenant, agents: agent === undefined ? null : [agent], users: user === undefined ? null : [user] };
}

/** Whether a filter accepts a record, except for `withoutVectorsOf`. */
export function matches(record: MemoryRecord, { kinds, keys, where = {}, shown, ...bounds }: RecordFilter): boolean {
  const { createdSince = -Infinity, createdBefore = Infinity, worthMin = -Infinity } = bounds;
  if (kinds?.includes(record.kind) === false || keys?.includes(record.key) === false) return false;
  if ((shown !== undefined && record.shown !== shown) || record.worth < worthMin) return false;
  if (record.createdAt < createdSince || record.createdAt >= createdBefore) return false;
  return RECORD_FIELDS.every((field) => {
    const wanted = where[field];
    return wanted === undefined || listOf(record.fields[field]).some((value) => listOf(wanted).includes(value));
  });
}

const listOf = (value: string | readonly string[] = []): readonly string[] => (typeof value === 'string' ? [value] : value);

/** Cosines and BM25 values below this are rounding errors. */
const VALUE_MIN = 1e-6;

/**
 * The `limit` candidates with the highest BM25, then the `limit` with the highest cosines, each candidate once. Values below `VALUE_MIN`
 * don't count. Equal values are in the order `newest`.
 */
export function bestCandidates(found: readonly Candidate[], limit: number): readonly Candidate[] {
  const best = (value: 'bm25' | 'cosine') =>
    found
      .filter((candidate) => candidate[value] >= VALUE_MIN)
      .toSorted((a, b) => b[value] - a[value] || newestFirst(a, b))
      .slice(0, limit);
  const byWords = new Set(best('bm25'));
  const others = best('cosine').filter((candidate) => !byWords.has(candidate));
  return [...byWords, ...others.map((candidate) => ({ ...candidate, bm25: 0 }))];
}

/** The order `newest`: by `createdAt`, newest first, then by key descending. */
export function newestFirst(a: Pick<Candidate, 'createdAt' | 'key'>, b: Pick<Candidate, 'createdAt' | 'key'>): number {
  return b.createdAt - a.createdAt || compareKeys(b.key, a.key);
}

/** Compares by code points, which is also the order of UTF-8 bytes. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function nameOf({ kind, key }: Pick<Candidate, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}
