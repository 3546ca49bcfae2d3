import { hash } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import { ErasureReceipt, NamedRecord, Reembedding } from '@etude/contracts/memory-upkeep';
import { MemoryUpkeepJob } from '@etude/contracts/queues';
import { z } from 'zod';
import { type DurableWork, Records, type RequestedRecord } from '../jobs/durable-work.js';
import { parseOr } from '../jobs/job-end.js';
import type { Producer } from '../jobs/producer.js';
import { type ErasureSubject, memberOf, newId } from '../redis/keys.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';

/** The record of an erasure. The name of its subject is dropped once the erasure has succeeded. */
export const StoredErasure = z.object({
  receipt: ErasureReceipt,
  /** Number of things by place when the erasure began. So things that a killed worker removed are counted too. */
  found: z.record(z.string(), z.number().int()).default({}),
  /** Data made from this time on (ms since 1970) stays, however often the erasure is retried; null until running work has been stopped. */
  newFrom: z.number().int().nullable().default(null),
  /** Whose data is erased. null once nothing is left: the remaining steps need no name. */
  subject: z
    .union([
      z.strictObject({ agent: z.string() }),
      z.strictObject({ user: z.string() }),
      z.strictObject({ all: z.literal(true) }),
      z.strictObject({ record: NamedRecord }),
    ])
    .nullable(),
});
export type StoredErasure = z.infer<typeof StoredErasure>;

type Asked = Omit<RequestedRecord<typeof StoredErasure>, 'id' | 'record'>;

/** What the caller knows in advance when it deletes a single record. */
type DeletionPlan = Pick<z.input<typeof StoredErasure>, 'found' | 'newFrom'> & { readonly supported?: readonly string[] };

/** How long a receipt is kept after its erasure has succeeded. */
export const RECEIPT_KEPT_MS = 400 * 86_400_000;
/** How long the receipt of a failed erasure is kept. It is shorter, because the record holds the subject's name for a retry. */
export const FAILED_RECEIPT_KEPT_MS = 30 * 86_400_000;
/** Stands for the tenant of the move to another model. The move belongs to no tenant. */
const NO_TENANT = '-';

const NONE = { dimension: null, dropModel: null, done: 0, total: null, error: null, startedAt: 0, updatedAt: 0 };
const IDLE: Reembedding = { id: '', model: '', state: 'idle', ...NONE };

/** Erasures, moves to another embedding model, and repairs of memory, for callers and workers. @throws EtudeError QUEUE_UNAVAILABLE; every method */
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

  /** Running erasures, for the reconciler. An erasure whose job is dead has failed. A redrive of the job or a new request continues it. */
  get erasures(): DurableWork {
    return this.#erasures.work(async (tenant, id, { code, message }, finishedAt) => {
      const stored = await this.loadErasure(tenant, id);
      const end = { state: 'failed', error: `${code}: ${message}`, finishedAt } as const;
      if (stored !== null) await this.putErasure({ ...stored, receipt: { ...stored.receipt, ...end } });
      return 'over';
    });
  }

  /** The running move to another model, for the reconciler. A move whose job is dead has failed. */
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

  /** Asks a worker for an erasure. @param request `requestId` empty: every call is a new erasure @throws EtudeError as `Records.create` */
  async requestErasure(request: Asked, subject: ErasureSubject, { supported = [], ...plan }: DeletionPlan = {}): Promise<ErasureReceipt> {
    const receipt = { ...newReceipt(request.tenant, subject), supported: [...supported] };
    const record = StoredErasure.parse({ ...plan, receipt, subject });
    return (await this.#erasures.create({ ...request, id: receipt.id, record })).receipt;
  }

  /** The receipt of an earlier deletion with this request id, or null. @throws EtudeError as `Records.create` */
  async earlierDeletion(request: Asked): Promise<ErasureReceipt | null> {
    return (await this.#erasures.earlier(request))?.receipt ?? null;
  }

  /**
   * Starts or resumes moving all vectors to another model. While a move to the same model runs, returns that move's progress.
   * @throws EtudeError FAILED_PRECONDITION while a move to a different model, or with a different `dropModel`, runs
   */
  async startReembedding(move: Pick<Reembedding, 'model'> & Partial<Reembedding>): Promise<Reembedding> {
    const { model, dimension = null, dropModel = null } = move;
    const now = Date.now();
    const asked: Reembedding = { ...IDLE, id: newId('m'), model, dimension, dropModel, state: 'running', startedAt: now, updatedAt: now };
    const { redis, keys } = this.producer;
    const places = [keys.reembedding, keys.outbox('reembeddings')];
    const args = [JSON.stringify(asked), memberOf(NO_TENANT, asked.id)];
    const standing = readReembedding(await runScript<string>(redis, 'startReembedding', places, args));
    const isSameDrop = dropModel === null || standing.dropModel === dropModel;
    if (standing.model !== model || !isSameDrop) {
      const message = `a move of the vectors to ${standing.model} is running (vectors to drop: ${standing.dropModel ?? 'none'}); stop it first, or wait until it ends`;
      throw new EtudeError('FAILED_PRECONDITION', message);
    }
    await this.producer.addForRecord(MemoryUpkeepJob, { v: 1, work: 'reembed', id: standing.id });
    return standing;
  }

  /** Stops a running move. Vectors that were embedded stay, and `startReembedding` resumes there. Does nothing if no move runs. */
  async stopReembedding(): Promise<Reembedding> {
    const record = await this.reembedding();
    if (record.state === 'running') await this.putReembedding({ ...record, state: 'stopped' });
    return this.reembedding();
  }

  /** The running or last move; `idle` if there was none. */
  async reembedding(): Promise<Reembedding> {
    const text = await whileRedisAnswers(this.producer.redis, this.producer.redis.get(this.producer.keys.reembedding));
    return text ? readReembedding(text) : IDLE;
  }

  /** Lets a worker find and repair half-written records, and waits for its report. @throws AbortError when `signal` aborts */
  async reconcile(signal: AbortSignal): Promise<NonNullable<z.output<typeof MemoryUpkeepJob.result>['report']>> {
    const { report } = await this.producer.addAndWait(MemoryUpkeepJob, { v: 1, work: 'reconcile', id: newId('c') }, signal);
    if (!report) throw new EtudeError('INTERNAL', 'the job that reconciles memory ended without a report');
    return report;
  }

  loadErasure(tenant: string, id: string): Promise<StoredErasure | null> {
    return this.#erasures.get(tenant, id);
  }

  /** For the holder of the job: stores progress or the end. A success drops the subject's name; a failed record expires sooner. */
  async putErasure(stored: z.input<typeof StoredErasure>): Promise<void> {
    const { tenant, id, state } = stored.receipt;
    const kept = JSON.stringify({ ...stored, subject: state === 'succeeded' ? null : stored.subject });
    const keptMs = { running: 0, failed: FAILED_RECEIPT_KEPT_MS, succeeded: RECEIPT_KEPT_MS }[state];
    const { redis, keys } = this.producer;
    await runScript(redis, 'putRecord', [keys.erasure(tenant, id), keys.erasureOutbox], [kept, memberOf(tenant, id), keptMs]);
  }

  /** For the worker: stores a move's progress or end. False if the move was stopped or another move runs: the worker has to stop. */
  async putReembedding(record: Reembedding): Promise<boolean> {
    const { redis, keys } = this.producer;
    return (await runScript<number>(redis, 'putReembedding', [keys.reembedding], [record.id, JSON.stringify(record)])) === 1;
  }
}

function newReceipt(tenant: string, subject: ErasureSubject): ErasureReceipt {
  return ErasureReceipt.parse({
    id: newId('e'),
    tenant,
    agentDigest: 'agent' in subject ? hash('sha256', subject.agent) : null,
    userDigest: 'user' in subject ? hash('sha256', subject.user) : null,
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
