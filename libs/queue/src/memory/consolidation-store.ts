import { randomBytes } from 'node:crypto';
import { ConsolidationRecord } from '@etude/contracts/consolidation';
import { EtudeError } from '@etude/contracts/errors';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { markOf, type RedisKeys, RETENTION_MS } from '../redis/keys.js';
import { parseOr } from '../jobs/job-failure.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';
import type { Redis } from 'ioredis';

/** What a caller asks of a run; with the request id it decides whether two calls are the same. */
export interface ConsolidationAsk {
  readonly agent: string | null;
  readonly days: number;
  readonly dryRun: boolean;
}

/** Records of consolidation runs. Kept for the retention after their end. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class ConsolidationStore {
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly options: { readonly retentionMs?: number } = {},
  ) {}

  /**
   * A new record in state `queued`; its job is the caller's to add. The same request id and ask answer with the first run.
   *
   * @throws EtudeError ALREADY_EXISTS when the request id was used for something else
   */
  async create(tenant: string, ask: ConsolidationAsk, requestId: string): Promise<{ record: ConsolidationRecord; created: boolean }> {
    const record = ConsolidationRecord.parse({ ...ask, id: newRunId(), tenant, state: 'queued', createdAt: Date.now() });
    const requestKey = requestId ? this.keys.request(tenant, 'consolidate', requestId) : '';
    const args = [record.id, contentDigest(ask), JSON.stringify(record), this.#retentionMs];
    const [outcome, id] = await runScript<[string, string]>(
      this.redis,
      'createConsolidation',
      [this.keys.consolidation(tenant, record.id), requestKey],
      args,
    );
    if (outcome === 'created') return { record, created: true };
    if (outcome === 'other')
      throw new EtudeError('ALREADY_EXISTS', `request_id "${requestId}" was used for run ${id} with other settings; use a new request_id`, {
        field: 'request_id',
      });
    const first = await this.get(tenant, id);
    if (!first) throw new EtudeError('NOT_FOUND', `run ${id} of request_id "${requestId}" is no longer kept`);
    return { record: first, created: false };
  }

  async get(tenant: string, runId: string): Promise<ConsolidationRecord | null> {
    const text = await this.#bounded(this.redis.get(this.keys.consolidation(tenant, runId)));
    return text ? parseOr(ConsolidationRecord, JSON.parse(text), 'INTERNAL', `the record of consolidation run ${runId}`) : null;
  }

  /** Only whoever holds the run's job writes it. Of a run that began before an erasure nothing of the erased is kept. */
  async put(record: ConsolidationRecord): Promise<void> {
    const { tenant, id, agent, createdAt, state } = record;
    const keptMs = state === 'done' || state === 'failed' ? this.#retentionMs : 0;
    const mark = agent === null ? '' : markOf({ agent });
    await runScript(
      this.redis,
      'putConsolidation',
      [this.keys.consolidation(tenant, id), this.keys.erased(tenant)],
      [JSON.stringify(record), JSON.stringify(withoutQuotes(record)), createdAt, mark, keptMs],
    );
  }

  get #retentionMs(): number {
    return this.options.retentionMs ?? RETENTION_MS;
  }

  #bounded<T>(work: Promise<T>): Promise<T> {
    return whileRedisAnswers(this.redis, work);
  }
}

const QUOTES_ERASED = 'what this run planned may have quoted somebody who was erased since, and was removed';

/** What a run planned quotes facts, whose owners are not told apart. Answers the very record where nothing is left to cut out. */
export function withoutQuotes(record: ConsolidationRecord): ConsolidationRecord {
  return record.plan.every((line) => line === QUOTES_ERASED) ? record : { ...record, plan: [QUOTES_ERASED] };
}

function newRunId(): string {
  return `c${Date.now().toString(36).padStart(9, '0')}${randomBytes(6).toString('hex')}`;
}
