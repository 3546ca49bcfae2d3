import { EtudeError } from '@etude/contracts/errors';
import { ErasureReceipt, Reembedding } from '@etude/contracts/memory-upkeep';
import { MemoryUpkeepJob } from '@etude/contracts/queues';
import { z } from 'zod';
import { type DurableWork, Records } from '../jobs/durable-work.js';
import { parseOr } from '../jobs/job-end.js';
import type { Producer } from '../jobs/producer.js';
import { digestOfName, type ErasureSubject, memberOf, newId } from '../redis/keys.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';

/** An erasure as its worker has it. Its names are dropped once nothing is left. */
const StoredErasure = z.object({
  receipt: ErasureReceipt,
  /** By place, what there was when it began: what a worker removed before it was killed is counted by it. */
  found: z.record(z.string(), z.number().int()).default({}),
  /** What was made from then on (ms since 1970) is new, and stays however often it is repeated; null until what ran has been stopped. */
  newFrom: z.number().int().nullable().default(null),
  /** How often its dead job was made to wait again. */
  revived: z.number().int().default(0),
  /** null while it runs: nothing is left, and what is still to do needs no name. */
  subject: z
    .union([z.strictObject({ agent: z.string() }), z.strictObject({ user: z.string() }), z.strictObject({ all: z.literal(true) })])
    .nullable(),
});
export type StoredErasure = z.infer<typeof StoredErasure>;

/** Receipts are kept that long after their end. */
export const RECEIPT_KEPT_MS = 400 * 86_400_000;
/** One that failed has a name in it, so that it can be tried again. */
export const FAILED_RECEIPT_KEPT_MS = 30 * 86_400_000;
/** Times that the dead job of an erasure is tried again. */
const REVIVED_MAX = 3;
/** The move to another model belongs to no tenant. */
const NO_TENANT = '-';

const NONE = { dimension: null, dropModel: null, done: 0, total: null, error: null, startedAt: 0, updatedAt: 0 };
const IDLE: Reembedding = { id: '', model: '', state: 'idle', ...NONE };

/**
 * What is done to memory as a whole, as callers ask for it and workers do it: the record first, then a job `memory.upkeep`.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class UpkeepStore {
  readonly #erasures: Records<typeof StoredErasure>;

  constructor(private readonly producer: Producer) {
    const { keys } = producer;
    this.#erasures = new Records(producer, {
      schema: StoredErasure,
      what: 'erasure',
      outbox: keys.erasureOutbox,
      key: keys.erasure,
      queue: MemoryUpkeepJob,
      job: ({ receipt: { state, tenant, id } }) => (state === 'running' ? { v: 1, work: 'erase', tenant, id } : null),
      method: 'erase',
      requestKeptMs: RECEIPT_KEPT_MS,
    });
  }

  /** A dead job of an erasure, such as one that lost its worker, is tried again a few times. */
  get erasures(): DurableWork {
    return this.#erasures.work(async (tenant, id, { code, message }, diedAt) => {
      const stored = await this.loadErasure(tenant, id);
      if (stored === null) return 'over';
      const { receipt, revived } = stored;
      const isGivenUp = revived >= REVIVED_MAX;
      const failed = { ...receipt, state: 'failed' as const, error: `${code}: ${message}`, finishedAt: diedAt };
      await this.putErasure({ ...stored, revived: revived + 1, receipt: isGivenUp ? failed : receipt });
      return isGivenUp ? 'over' : 'again';
    });
  }

  /** The move to another model while it runs, for the reconciler. A move whose job is dead has failed. */
  get reembeddings(): DurableWork {
    return {
      name: 'moves to another model',
      outbox: this.producer.keys.outbox('reembeddings'),
      queue: MemoryUpkeepJob,
      due: async (_tenant, id) => {
        const { id: running, state } = await this.reembedding();
        return running === id && state === 'running' ? { payload: { v: 1, work: 'reembed', id } } : null;
      },
      onDead: async (_tenant, _id, { code, message }) => {
        const record = await this.reembedding();
        await this.putReembedding({ ...record, state: 'failed', error: `${code}: ${message}`, updatedAt: Date.now() });
        return 'over';
      },
    };
  }

  /** Asks for an erasure, done by a worker. @param requestId empty: every call is a new erasure @throws EtudeError as `Records.create` */
  async requestErasure(tenant: string, requestId: string, subject: ErasureSubject): Promise<{ receipt: ErasureReceipt; created: boolean }> {
    const receipt = newReceipt(tenant, subject);
    const asked = { tenant, id: receipt.id, record: StoredErasure.parse({ receipt, subject }), requestId, asked: subject };
    const { record, created } = await this.#erasures.create(asked);
    return { receipt: record.receipt, created };
  }

  /** null where there is none of this tenant. */
  async erasure(tenant: string, id: string): Promise<ErasureReceipt | null> {
    return (await this.loadErasure(tenant, id))?.receipt ?? null;
  }

  /**
   * Starts moving all vectors to another model, or goes on with it where it was stopped. Asked again for the model that is being
   * moved to, it answers how far that is.
   *
   * @throws EtudeError FAILED_PRECONDITION while all are moved to a different model
   */
  async startReembedding({
    model,
    dimension = null,
    dropModel = null,
  }: Pick<Reembedding, 'model'> & Partial<Reembedding>): Promise<Reembedding> {
    const now = Date.now();
    const asked: Reembedding = { ...IDLE, id: newId('m'), model, dimension, dropModel, state: 'running', startedAt: now, updatedAt: now };
    const { redis, keys } = this.producer;
    const [places, args] = [
      [keys.reembedding, keys.outbox('reembeddings')],
      [JSON.stringify(asked), memberOf(NO_TENANT, asked.id)],
    ];
    const standing = readReembedding(await runScript<string>(redis, 'startReembedding', places, args));
    if (standing.model !== model)
      throw new EtudeError('FAILED_PRECONDITION', `vectors are being moved to ${standing.model}; stop that or wait for its end first`);
    if (dropModel !== null && standing.dropModel !== dropModel)
      throw new EtudeError('FAILED_PRECONDITION', `vectors are being moved, and ${standing.dropModel ?? 'nothing'} is dropped behind it`);
    await this.producer.addForRecord(MemoryUpkeepJob, { v: 1, work: 'reembed', id: standing.id });
    return standing;
  }

  /** What was embedded stays; `startReembedding` goes on with it. Nothing where none is running. */
  async stopReembedding(): Promise<Reembedding> {
    const text = await runScript<string | null>(this.producer.redis, 'stopReembedding', [this.producer.keys.reembedding], []);
    return text ? readReembedding(text) : IDLE;
  }

  /** The one that is running or was last; `idle` where there was none. */
  async reembedding(): Promise<Reembedding> {
    const text = await whileRedisAnswers(this.producer.redis, this.producer.redis.get(this.producer.keys.reembedding));
    return text ? readReembedding(text) : IDLE;
  }

  /** Has a worker look for half-written things and mend them, and waits for its report. @throws AbortError when `signal` aborts */
  async reconcile(signal: AbortSignal): Promise<NonNullable<z.output<typeof MemoryUpkeepJob.result>['report']>> {
    const { report } = await this.producer.addAndWait(MemoryUpkeepJob, { v: 1, work: 'reconcile', id: newId('c') }, signal);
    if (!report) throw new EtudeError('INTERNAL', 'the job that reconciles memory ended without a report');
    return report;
  }

  /** For the worker. null where there is none. */
  loadErasure(tenant: string, id: string): Promise<StoredErasure | null> {
    return this.#erasures.get(tenant, id);
  }

  /** For the holder of the job: progress, or the end. The names go with a success, and after a time with a failure. */
  async putErasure(stored: z.input<typeof StoredErasure>): Promise<void> {
    const { tenant, id, state } = stored.receipt;
    const kept = JSON.stringify({ ...stored, subject: state === 'succeeded' ? null : stored.subject });
    const keptMs = { running: 0, failed: FAILED_RECEIPT_KEPT_MS, succeeded: RECEIPT_KEPT_MS }[state];
    const { redis, keys } = this.producer;
    await runScript(redis, 'putRecord', [keys.erasure(tenant, id), keys.erasureOutbox], [kept, memberOf(tenant, id), keptMs]);
  }

  /** For the worker. False: it was stopped, or another one runs; then the worker stops and writes nothing more. */
  async putReembedding(record: Reembedding): Promise<boolean> {
    const { redis, keys } = this.producer;
    return (await runScript<number>(redis, 'putReembedding', [keys.reembedding], [record.id, JSON.stringify(record)])) === 1;
  }
}

function newReceipt(tenant: string, subject: ErasureSubject): ErasureReceipt {
  return ErasureReceipt.parse({
    id: newId('e'),
    tenant,
    agentDigest: 'agent' in subject ? digestOfName(subject.agent) : null,
    userDigest: 'user' in subject ? digestOfName(subject.user) : null,
    state: 'running',
    removed: {},
    left: {},
    notes: [],
    error: null,
    requestedAt: Date.now(),
    finishedAt: null,
  });
}

function readReembedding(text: string): Reembedding {
  return parseOr(Reembedding, JSON.parse(text), 'INTERNAL', 'the record of the move to another model');
}
