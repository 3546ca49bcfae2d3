import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import { EtudeError } from '@etude/contracts/errors';
import { ConsolidationRunJob } from '@etude/contracts/queues';
import { createRecord, type DurableWork, readRecord, type RecordKind } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { markOf, memberOf, newId, RETENTION_MS } from '../redis/keys.js';
import { runScript } from '../redis/redis.js';

/** A caller's request for a run. */
export interface ConsolidationAsk {
  readonly agent: string | null;
  readonly days: number;
  readonly dryRun: boolean;
}

/**
 * Consolidation runs: a record, then its job `consolidation.run`. Kept for the retention after their end.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class ConsolidationStore {
  readonly #kind: RecordKind<typeof ConsolidationRecord>;

  constructor(
    private readonly producer: Producer,
    private readonly options: { readonly retentionMs?: number } = {},
  ) {
    const { keys } = producer;
    this.#kind = { schema: ConsolidationRecord, what: 'consolidation run', outbox: keys.consolidationOutbox, key: keys.consolidation };
  }

  /** Runs that are not over, for the reconciler. A run whose job is dead has failed. */
  get work(): DurableWork {
    return {
      name: 'consolidation runs',
      outbox: this.#kind.outbox,
      queue: ConsolidationRunJob,
      due: async (tenant, id) => {
        const record = await this.get(tenant, id);
        return record === null || isOver(record) ? null : { payload: jobOf(record) };
      },
      onDead: async (tenant, id, { code, message }, diedAt) => {
        const record = await this.get(tenant, id);
        if (record !== null) await this.put({ ...record, state: 'failed', error: `${code}: ${message}`, endedAt: diedAt });
        return 'over';
      },
    };
  }

  /**
   * Asks for a run: durable when this returns. The same request id and ask answer with the first run.
   *
   * @throws EtudeError ALREADY_EXISTS when the request id was used for something else
   */
  async create(tenant: string, ask: ConsolidationAsk, requestId: string): Promise<{ record: ConsolidationRecord; created: boolean }> {
    const record = ConsolidationRecord.parse({ ...ask, id: newId('c'), tenant, state: 'queued', createdAt: Date.now() });
    const request = { method: 'consolidate', requestId, asked: ask, requestKeptMs: this.#retentionMs };
    const { id, created } = await createRecord(this.producer, this.#kind, { tenant, id: record.id, record, ...request });
    const stored = created ? record : await this.get(tenant, id);
    if (!stored) throw new EtudeError('NOT_FOUND', `run ${id} of request_id "${requestId}" is no longer kept`);
    if (stored.state === 'queued') await this.producer.addForRecord(ConsolidationRunJob, jobOf(stored));
    return { record: stored, created };
  }

  get(tenant: string, runId: string): Promise<ConsolidationRecord | null> {
    return readRecord(this.producer, this.#kind, tenant, runId);
  }

  /** Only the holder of the run's job calls it. Of a run that began before an erasure nothing of the erased is kept. */
  async put(record: ConsolidationRecord): Promise<void> {
    const { redis, keys } = this.producer;
    const { tenant, id, agent, createdAt } = record;
    const mark = agent === null ? '' : markOf({ agent });
    await runScript(
      redis,
      'putConsolidation',
      [keys.consolidation(tenant, id), this.#kind.outbox, keys.erased(tenant)],
      [
        JSON.stringify(record),
        memberOf(tenant, id),
        isOver(record) ? this.#retentionMs : 0,
        JSON.stringify(withoutQuotes(record)),
        createdAt,
        mark,
      ],
    );
  }

  get #retentionMs(): number {
    return this.options.retentionMs ?? RETENTION_MS;
  }
}

const isOver = ({ state }: ConsolidationRecord): boolean => state === 'done' || state === 'failed';

const jobOf = ({ tenant, id, agent, days, dryRun }: ConsolidationRecord) => ({ v: 1 as const, tenant, runId: id, agent, days, dryRun });

const QUOTES_ERASED = 'what this run planned may have quoted somebody who was erased since, and was removed';

/** Cuts out the plan, which quotes facts of owners that are not told apart. Answers the same object where nothing is left to cut. */
export function withoutQuotes(record: ConsolidationRecord): ConsolidationRecord {
  return record.plan.every((line) => line === QUOTES_ERASED) ? record : { ...record, plan: [QUOTES_ERASED] };
}
