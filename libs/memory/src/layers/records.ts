import type { MemoryRecord, RecordFilter, RecordStore, StoredRecord } from '../record-store.js';
import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { ChatModel } from '@etude/domain/ports/model';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { setTimeout as sleep } from 'node:timers/promises';

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

/** What stands in a record's body: the value, and the ids of the writes that changed it last. */
export interface StoredBody<T> {
  readonly value: T;
  /** Oldest first. */
  readonly taken: readonly string[];
}

/** After so many later writes on the same record, only the `applied` record still shows that a write was applied. */
export const TAKEN_MAX = 256;

const REASON_CHARS_MAX = 300;

export function bodyOf(value: object, taken: readonly string[] = []): string {
  return JSON.stringify(taken.length === 0 ? { value } : { value, taken });
}

/** @throws EtudeError MEMORY_UNAVAILABLE for what no layer has written */
export function parseBody<T>({ layer, kind, key, body }: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): StoredBody<T> {
  try {
    const { value, taken = [] } = JSON.parse(body) as { value: T; taken?: readonly string[] };
    if (value !== undefined) return { value, taken };
  } catch (cause) {
    throw damaged(layer, kind, key, cause);
  }
  throw damaged(layer, kind, key, null);
}

/**
 * Does `work` for one record among many. Where it fails for that record, a sentence joins `problems` and the caller goes on.
 *
 * @throws EtudeError of a store that does not answer at all
 */
export async function unlessUnreadable(store: RecordStore, problems: string[], what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await store.check();
    problems.push(`${what} could not be looked at: ${(error instanceof Error ? error.message : String(error)).slice(0, REASON_CHARS_MAX)}`);
  }
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
 * Reads, decides and writes again until nobody else was faster: `attempt` answers null where a revision it read had gone by.
 * Waits, for a random time that grows, only after a collision.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE after 200 of them
 */
export async function untilTaken<T>(what: string, attempt: () => Promise<T | null>): Promise<T> {
  for (let collisions = 0; collisions < ATTEMPTS_MAX; collisions += 1) {
    if (collisions > 0) await sleep(Math.random() * Math.min(WAIT_MS_MAX, 2 ** collisions));
    const done = await attempt();
    if (done !== null) return done;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `${what} was changed by others ${ATTEMPTS_MAX} times while it was being written; try again`);
}

/** Lets the writes of one owner pass one after the other; those of others at the same time. Of this process alone. */
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

/** Every record that a reader sees, in the order of the keys, read a page at a time. */
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

/**
 * Changes each of these records, of one tenant and layer, at the revision that it has by then.
 *
 * @param change null: this one stays as it is
 * @returns how many were changed; a record that is gone by then is not
 */
export async function updateEach(
  store: RecordStore,
  records: readonly StoredRecord[],
  change: (record: StoredRecord) => MemoryRecord | null,
): Promise<number> {
  let changed = 0;
  for (const read of records) {
    const { tenant } = read.scope;
    let current: StoredRecord | undefined = read;
    const isChanged = await untilTaken(`${read.kind} ${read.key}`, async () => {
      const next = current === undefined ? null : change(current);
      if (current === undefined || next === null) return false;
      const [done] = await store.write(tenant, [{ do: 'update', record: next, revision: current.revision }]);
      if (done) return true;
      [current] = await store.load({ tenant, agent: null }, read.layer, read.kind, [read.key]);
      return null;
    });
    if (isChanged) changed += 1;
  }
  return changed;
}
