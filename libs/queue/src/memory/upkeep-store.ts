import { createHash, randomBytes } from 'node:crypto';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { ErasureReceipt, Reembedding } from '@etude/contracts/memory-upkeep';
import { MemoryUpkeepJob } from '@etude/contracts/queues';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { z } from 'zod';
import { parseOr } from '../jobs/job-failure.js';
import type { Producer } from '../jobs/producer.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';
import { memberOf } from '../redis/keys.js';

/** Whose data: one agent's, one user's, or all of the tenant. */
export type ErasureSubject = { readonly agent: string } | { readonly user: string } | { readonly all: true };

/** What a worker needs to erase; the names are dropped once nothing is left. */
const StoredErasure = z.strictObject({
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

export type UpkeepReport = NonNullable<z.output<typeof MemoryUpkeepJob.result>['report']>;

export interface ReembeddingRequest {
  readonly model: string;
  /** Of a model whose length is not known by its name. */
  readonly dimension?: number | null;
  readonly dropModel?: string | null;
}

/** Receipts are kept that long after their end. */
export const RECEIPT_KEPT_MS = 400 * 86_400_000;
/** One that failed has a name in it, so that it can be tried again. */
export const FAILED_RECEIPT_KEPT_MS = 30 * 86_400_000;

const IDLE: Reembedding = {
  id: '',
  model: '',
  dimension: null,
  dropModel: null,
  state: 'idle',
  done: 0,
  total: null,
  error: null,
  startedAt: 0,
  updatedAt: 0,
};

/**
 * What is done to memory as a whole, as callers ask for it and workers do it: the record first, then a job `memory.upkeep`.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class UpkeepStore {
  constructor(private readonly producer: Producer) {}

  /**
   * Asks for an erasure: durable when this returns, done by a worker. The same request id and subject answer with the first receipt.
   *
   * @param requestId empty: every call is a new erasure
   * @throws EtudeError ALREADY_EXISTS when the request id was used for somebody else; NOT_FOUND when its receipt is no longer kept
   */
  async requestErasure(
    tenant: string,
    requestId: string,
    subject: ErasureSubject,
  ): Promise<{ readonly receipt: ErasureReceipt; readonly created: boolean }> {
    const { redis, keys } = this.producer;
    const receipt = newReceipt(tenant, subject);
    const record = StoredErasure.parse({ receipt, subject });
    const [outcome, id] = await runScript<[string, string]>(
      redis,
      'createErasure',
      [keys.erasure(tenant, receipt.id), requestId ? keys.request(tenant, 'erase', requestId) : '', keys.erasureOutbox],
      [receipt.id, contentDigest(subject), JSON.stringify(record), RECEIPT_KEPT_MS, memberOf(tenant, receipt.id)],
    );
    if (outcome === 'other')
      throw new EtudeError('ALREADY_EXISTS', `request_id "${requestId}" was used for another erasure; use a new request_id`, {
        field: 'request_id',
      });
    const stored = await this.erasure(tenant, id);
    if (!stored) throw new EtudeError('NOT_FOUND', `the receipt of request_id "${requestId}" is no longer kept`);
    if (stored.state === 'running') await this.#enqueue({ v: 1, work: 'erase', tenant, id });
    return { receipt: stored, created: outcome === 'created' };
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
  async startReembedding({ model, dimension = null, dropModel = null }: ReembeddingRequest): Promise<Reembedding> {
    const now = Date.now();
    const asked = Reembedding.parse({
      ...IDLE,
      id: newId('m'),
      model,
      dimension,
      dropModel,
      state: 'running',
      startedAt: now,
      updatedAt: now,
    });
    const text = await runScript<string>(
      this.producer.redis,
      'startReembedding',
      [this.producer.keys.reembedding],
      [JSON.stringify(asked)],
    );
    const standing = readReembedding(text);
    if (standing.model !== model)
      throw new EtudeError('FAILED_PRECONDITION', `vectors are being moved to ${standing.model}; stop that or wait for its end first`);
    if (dropModel !== null && standing.dropModel !== dropModel)
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `vectors are being moved to ${standing.model} already, and ${standing.dropModel === null ? 'nothing' : standing.dropModel} is dropped behind it; wait for its end first`,
      );
    await this.#enqueue({ v: 1, work: 'reembed', id: standing.id });
    return standing;
  }

  /** What was embedded stays; `startReembedding` goes on with it. Nothing where none is running. */
  async stopReembedding(): Promise<Reembedding> {
    const text = await runScript<string | null>(this.producer.redis, 'stopReembedding', [this.producer.keys.reembedding], []);
    return text ? readReembedding(text) : IDLE;
  }

  /** The one that is running or was last; `idle` where there was none. */
  async reembedding(): Promise<Reembedding> {
    const text = await this.#bounded(this.producer.redis.get(this.producer.keys.reembedding));
    return text ? readReembedding(text) : IDLE;
  }

  /** Has a worker look for half-written things and mend them, and waits for its report. @throws AbortError when `signal` aborts */
  async reconcile(signal: AbortSignal): Promise<UpkeepReport> {
    const { report } = await this.producer.addAndWait(MemoryUpkeepJob, { v: 1, work: 'reconcile', id: newId('c') }, signal);
    if (!report) throw new EtudeError('INTERNAL', 'the job that reconciles memory ended without a report');
    return report;
  }

  /** For the worker. null where there is none. */
  async loadErasure(tenant: string, id: string): Promise<StoredErasure | null> {
    const text = await this.#bounded(this.producer.redis.get(this.producer.keys.erasure(tenant, id)));
    return text ? parseOr(StoredErasure, JSON.parse(text), 'INTERNAL', `the record of erasure ${id}`) : null;
  }

  /** For who holds the job: what was removed so far, or how it ended. The names go with a success, and after a time with a failure. */
  async putErasure(stored: z.input<typeof StoredErasure>): Promise<void> {
    const { redis, keys } = this.producer;
    const { tenant, id, state } = stored.receipt;
    const kept = JSON.stringify({ ...stored, subject: state === 'succeeded' ? null : stored.subject });
    const scriptKeys = [keys.erasure(tenant, id), keys.erasureOutbox];
    const member = memberOf(tenant, id);
    if (state === 'running') await runScript(redis, 'keepErasure', scriptKeys, [kept, member]);
    else await runScript(redis, 'endErasure', scriptKeys, [kept, state === 'failed' ? FAILED_RECEIPT_KEPT_MS : RECEIPT_KEPT_MS, member]);
  }

  /** For the worker. False: it was stopped, or another one runs; then the worker stops and writes nothing more. */
  async putReembedding(record: Reembedding): Promise<boolean> {
    const { redis, keys } = this.producer;
    return (await runScript<number>(redis, 'putReembedding', [keys.reembedding], [record.id, JSON.stringify(record)])) === 1;
  }

  /** Why a failed `add` is no failure: the record says that there is work, and the reconciler adds its job. */
  async #enqueue(payload: z.infer<typeof MemoryUpkeepJob.payload>): Promise<void> {
    try {
      await this.producer.add(MemoryUpkeepJob, payload);
    } catch (error) {
      if (errorCode(error) !== 'QUEUE_UNAVAILABLE') throw error;
    }
  }

  #bounded<T>(work: Promise<T>): Promise<T> {
    return whileRedisAnswers(this.producer.redis, work);
  }
}

function newReceipt(tenant: string, subject: ErasureSubject): ErasureReceipt {
  return ErasureReceipt.parse({
    id: newId('e'),
    tenant,
    agentDigest: 'agent' in subject ? digestOf(subject.agent) : null,
    userDigest: 'user' in subject ? digestOf(subject.user) : null,
    state: 'running',
    removed: {},
    left: {},
    notes: [],
    error: null,
    requestedAt: Date.now(),
    finishedAt: null,
  });
}

const digestOf = (name: string): string => createHash('sha256').update(name).digest('hex');

const newId = (kind: string): string => `${kind}${Date.now().toString(36).padStart(9, '0')}${randomBytes(6).toString('hex')}`;

function readReembedding(text: string): Reembedding {
  return parseOr(Reembedding, JSON.parse(text), 'INTERNAL', 'the record of the move to another model');
}
