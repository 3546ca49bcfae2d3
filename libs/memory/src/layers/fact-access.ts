import type { Change, RecordStore, StoredRecord } from '../record-store.js';
import { factRecord, knownFact, LAYER } from './fact-records.js';
import type { ReadScope } from '@etude/domain/ports/memory';

/** Where failures that nobody waits for are told. */
export type LogFailure = (message: string, details: Readonly<Record<string, unknown>>) => void;
const FLUSH_DELAY_MS = 200;
const WAITING_MAX = 10_000;
const ATTEMPTS_MAX = 5;

/** Counts that facts were shown, behind the caller's back and many at once. What cannot be counted is lost, and logged. */
export class AccessCounts {
  readonly #store: RecordStore;
  readonly #log: LogFailure;
  /** By reader, then by id: how often. */
  #waiting = new Map<string, { scope: ReadScope; counts: Map<string, number> }>();
  #size = 0;
  #lost = 0;
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> = Promise.resolve();

  constructor(store: RecordStore, log: LogFailure) {
    this.#store = store;
    this.#log = log;
  }

  add(scope: ReadScope, ids: readonly string[]): void {
    const name = JSON.stringify([scope.tenant, scope.agent, scope.user ?? null]);
    const { counts } = this.#waiting.get(name) ?? { counts: new Map<string, number>() };
    this.#waiting.set(name, { scope, counts });
    for (const id of ids) {
      if (!counts.has(id) && this.#size >= WAITING_MAX) this.#lost += 1;
      else {
        this.#size += counts.has(id) ? 0 : 1;
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
    }
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_DELAY_MS).unref();
  }

  /** Writes what waits. Never fails. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flushing = this.#flushing.then(() => this.#writeAll());
    return this.#flushing;
  }

  async #writeAll(): Promise<void> {
    const readers = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#size = 0;
    let reason: unknown = 'too many waited';
    for (const { scope, counts } of readers) {
      try {
        this.#lost += await this.#write(scope, counts);
      } catch (error) {
        this.#lost += counts.size;
        reason = error;
      }
    }
    if (this.#lost > 0) this.#log('accesses of facts were not counted', { facts: this.#lost, reason });
    this.#lost = 0;
  }

  /** How many were changed by others again and again. */
  async #write(scope: ReadScope, counts: ReadonlyMap<string, number>): Promise<number> {
    let left = [...counts.keys()];
    for (let attempt = 0; attempt < ATTEMPTS_MAX && left.length > 0; attempt += 1) {
      const records = await this.#store.load(scope, LAYER, 'fact', left);
      const changes = records.map((record) => counted(record, counts.get(record.key) ?? 0));
      const done = await this.#store.write(scope.tenant, changes);
      // A store with transactions has written nothing then, one without what stood before: that is read anew and not counted twice.
      left = records.filter((_, at) => done[at] !== true).map(({ key }) => key);
    }
    return left.length;
  }
}

function counted(record: StoredRecord, times: number): Change {
  const { fact, takenInOrder } = knownFact(record, 0);
  const next = factRecord({ ...fact, accessCount: fact.accessCount + times }, takenInOrder);
  const { shown, fields, revision } = record;
  return { do: 'update', record: { ...next, shown, fields }, revision };
}
