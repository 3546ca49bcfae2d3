import type { MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { LAYER } from './fact-records.js';
import { bodyOf, parseBody, updateEach } from './records.js';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { Fact } from '@etude/contracts/memory';
import type { ReadScope } from '@etude/domain/ports/memory';

/** Logs a failure that no caller waits for. */
export type LogFailure = (message: string, details: Readonly<Record<string, unknown>>) => void;
const FLUSH_DELAY_MS = 200;
/** Few, because a write of SQLite keeps other calls waiting. */
const BATCH = 16;

type Counts = Map<string, number>;

/** Counts how often facts were shown, in the background and in batches. If a count can't be written, it is logged and lost. */
export class AccessCounts {
  readonly #store: RecordStore;
  readonly #log: LogFailure;
  /** Counts not yet written, by reader. */
  #waiting = new Map<string, { scope: ReadScope; counts: Counts }>();
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
    for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_DELAY_MS).unref();
  }

  /** Writes all waiting counts. Never rejects. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flushing = this.#flushing.then(() => this.#writeAll());
    return this.#flushing;
  }

  async #writeAll(): Promise<void> {
    const readers = [...this.#waiting.values()];
    this.#waiting = new Map();
    for (const { scope, counts } of readers)
      await this.#write(scope, counts).catch((reason: unknown) =>
        this.#log('accesses of facts were not counted', { facts: counts.size, reason }),
      );
  }

  async #write(scope: ReadScope, counts: Counts): Promise<void> {
    const facts = await this.#store.load(scope, LAYER, 'fact', [...counts.keys()]);
    const change = (record: StoredRecord) => counted(record, counts.get(record.key) ?? 0);
    const how = { unsynced: true };
    for await (const batch of batchesOf(facts, { itemsMax: BATCH })) {
      const changes = batch.map((fact) => ({ do: 'update', record: change(fact), revision: fact.revision }) as const);
      const done = await this.#store.write(scope.tenant, changes, how);
      // Another writer changed one of them.
      const left = batch.filter((_, at) => done[at] !== true);
      await updateEach(this.#store, left, change, how);
    }
  }
}

function counted(record: StoredRecord, times: number): MemoryRecord {
  const { value: fact, taken } = parseBody<Fact>(record);
  return { ...record, body: bodyOf({ ...fact, accessCount: fact.accessCount + times }, taken) };
}
