import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import { ConsolidationRunJob } from '@etude/contracts/queues';
import { type DurableWork, Records } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { memberOf, newId, RETENTION_MS } from '../redis/keys.js';
import { runScript } from '../redis/redis.js';

type ConsolidationAsk = Pick<ConsolidationRecord, 'agent' | 'days' | 'dryRun'>;

/**
 * The consolidation runs that callers asked for: a record each, then its job `consolidation.run`. A record is kept for `retentionMs`
 * after its end.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class ConsolidationStore {
  readonly #records: Records<typeof ConsolidationRecord>;
  readonly #retentionMs: number;

  constructor(
    private readonly producer: Producer,
    { retentionMs = RETENTION_MS }: { readonly retentionMs?: number } = {},
  ) {
    const { keys } = producer;
    this.#retentionMs = retentionMs;
    this.#records = new Records(producer, {
      schema: ConsolidationRecord,
      what: 'consolidation run',
      outbox: keys.consolidationOutbox,
      key: keys.consolidation,
      queue: ConsolidationRunJob,
      job: (record) => (isOver(record) ? null : jobOf(record)),
      method: 'consolidate',
      requestKeptMs: retentionMs,
    });
  }

  /** These runs for the reconciler. A run whose job is dead has failed. */
  get work(): DurableWork {
    return this.#records.work(async (tenant, id, { code, message }, diedAt) => {
      const record = await this.get(tenant, id);
      if (record !== null) await this.put({ ...record, state: 'failed', error: `${code}: ${message}`, endedAt: diedAt });
      return 'over';
    });
  }

  /** Asks for a run. @throws EtudeError as `Records.create` */
  async create(tenant: string, ask: ConsolidationAsk, requestId: string): Promise<{ record: ConsolidationRecord; created: boolean }> {
    const record = ConsolidationRecord.parse({ ...ask, id: newId('c'), tenant, state: 'queued', createdAt: Date.now() });
    return this.#records.create({ tenant, id: record.id, record, requestId, asked: ask });
  }

  get(tenant: string, runId: string): Promise<ConsolidationRecord | null> {
    return this.#records.get(tenant, runId);
  }

  /** Stores a run's progress or end; for the holder of its job. A run that began before an erasure is removed: its plan may quote anybody. */
  async put(record: ConsolidationRecord): Promise<void> {
    const { redis, keys } = this.producer;
    const { tenant, id, createdAt } = record;
    const places = [keys.consolidation(tenant, id), keys.consolidationOutbox, keys.erased(tenant)];
    const args = [JSON.stringify(record), memberOf(tenant, id), isOver(record) ? this.#retentionMs : 0, createdAt];
    await runScript(redis, 'putConsolidation', places, args);
  }
}

export const isOver = ({ state }: ConsolidationRecord): boolean => state === 'done' || state === 'failed';

const jobOf = ({ tenant, id, agent, days, dryRun }: ConsolidationRecord) => ({ v: 1 as const, tenant, runId: id, agent, days, dryRun });
