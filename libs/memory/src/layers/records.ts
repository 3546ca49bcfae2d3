import type { MemoryRecord, RecordFilter, RecordStore, StoredRecord, WriteOptions } from '../record-store.js';
import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { ChatModel, Reranker } from '@etude/domain/ports/model';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LayerDeps {
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  /** Reranks the best hits of searches with `rerank`. Absent: the chat model reranks them. */
  readonly reranker?: Reranker;
  /** Absent, too: such searches report `rerankFailed`. */
  readonly chatModel?: ChatModel;
  /** Checks the signatures of skill proofs before a skill may be used. Absent: the service that runs a skill checks them. */
  readonly proofChecker?: ProofChecker;
}

/** The content of a record's body: the value, and the ids of the writes that changed it last. */
export interface StoredBody<T> {
  readonly value: T;
  /** Oldest first. */
  readonly taken: readonly string[];
}

/** Maximum number of write ids that a record remembers. Later only the `applied` record shows that a write was applied. */
export const TAKEN_MAX = 256;

export function bodyOf(value: object, taken: readonly string[] = []): string {
  return JSON.stringify(taken.length === 0 ? { value } : { value, taken });
}

/** @throws EtudeError MEMORY_UNAVAILABLE for a damaged body */
export function parseBody<T>({ layer, kind, key, body }: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): StoredBody<T> {
  try {
    const { value, taken = [] } = JSON.parse(body) as { value: T; taken?: readonly string[] };
    if (value !== undefined) return { value, taken };
  } catch (cause) {
    throw damaged(layer, kind, key, cause);
  }
  throw damaged(layer, kind, key, null);
}

export function withTaken(taken: readonly string[], writeId: string): readonly string[] {
  return [...taken, writeId].slice(-TAKEN_MAX);
}

function damaged(layer: string, kind: string, key: string, cause: unknown): EtudeError {
  const message = `the ${layer} record ${kind} ${JSON.stringify(key)} is damaged; restore the store from a copy`;
  return new EtudeError('MEMORY_UNAVAILABLE', message, {}, { cause });
}

const ATTEMPTS_MAX = 200;
const WAIT_MS_MAX = 40;

/**
 * Runs `attempt` until it returns a value. An attempt returns null if another writer changed a revision that it had read. After each
 * collision there is a pause of random, growing length.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE after 200 collisions; `what` names the record in its message
 */
export async function untilTaken<T>(what: string, attempt: () => Promise<T | null>): Promise<T> {
  for (let collisions = 0; collisions < ATTEMPTS_MAX; collisions += 1) {
    if (collisions > 0) await sleep(Math.random() * Math.min(WAIT_MS_MAX, 2 ** collisions));
    const done = await attempt();
    if (done !== null) return done;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `${what} was changed by others ${ATTEMPTS_MAX} times while it was being written; try again`);
}

/** Runs the writes of one owner one after another, and those of different owners at the same time. Covers only this process. */
export class OwnerTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>({ tenant, agent, user }: Scope, work: () => Promise<T>): Promise<T> {
    const owner = JSON.stringify([tenant, agent, user]);
    const before = this.#last.get(owner) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#last.set(owner, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(owner) === turn) this.#last.delete(owner);
    }
  }
}

/** All records that a reader sees and the filter accepts, in key order, read page by page. */
export async function* everyRecord(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  filter: RecordFilter,
  { size, afterKey }: { readonly size: number; readonly afterKey?: string },
): AsyncGenerator<StoredRecord> {
  for (let after = afterKey; ;) {
    const page = await store.find(scope, layer, filter, { order: 'key', limit: size, ...(after === undefined ? {} : { afterKey: after }) });
    yield* page;
    after = page.at(-1)?.key;
    if (page.length < size) return;
  }
}

/** Stores a record without searchable texts in place of `known`, or as a new one. False if another writer was faster. */
export async function putRecord(store: RecordStore, record: MemoryRecord, known: StoredRecord | null | undefined): Promise<boolean> {
  const change = known ? ({ do: 'update', record, revision: known.revision } as const) : ({ do: 'insert', record, indexed: [] } as const);
  return (await store.write(record.scope.tenant, [change]))[0] === true;
}

/**
 * Updates each record at its current revision, reloading it after a conflict.
 *
 * @param change returns the new record, or null to leave it unchanged
 * @returns how many records were changed, without those removed meanwhile
 */
export async function updateEach(
  store: RecordStore,
  records: readonly StoredRecord[],
  change: (record: StoredRecord) => MemoryRecord | null,
  how: WriteOptions = {},
): Promise<number> {
  let changed = 0;
  for (const read of records) {
    const { tenant } = read.scope;
    let current: StoredRecord | undefined = read;
    const isChanged = await untilTaken(`${read.kind} ${read.key}`, async () => {
      const next = current === undefined ? null : change(current);
      if (current === undefined || next === null) return false;
      const [done] = await store.write(tenant, [{ do: 'update', record: next, revision: current.revision }], how);
      if (done) return true;
      [current] = await store.load({ tenant, agent: null }, read.layer, read.kind, [read.key]);
      return null;
    });
    if (isChanged) changed += 1;
  }
  return changed;
}
