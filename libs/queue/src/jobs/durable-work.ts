import { EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { Job } from 'bullmq';
import type { z } from 'zod';
import { memberOf, parseMember } from '../redis/keys.js';
import { pairsOf, runScript, whileRedisAnswers } from '../redis/redis.js';
import { reviveJob } from './dead-letters.js';
import { deathOf, type JobFailure, parseOr } from './job-end.js';
import type { AddOptions, Producer } from './producer.js';

/** The job of a record. A missing job is added again until the record's work has ended. */
export interface DueJob {
  readonly payload: unknown;
  readonly options?: AddOptions;
  /** No job is added before this time, in ms since 1970. Absent: now. */
  readonly notBefore?: number;
}

/**
 * One kind of durable work. Its record is written first, together with its request id and an outbox entry. Then its job is added, with an
 * id made from the record's id. The entry stays until the record has ended. The reconciler reads the entries: it adds missing jobs, and
 * settles records whose job is dead.
 */
export interface DurableWork {
  readonly name: string;
  readonly outbox: string;
  readonly queue: QueueDeclaration;
  /** The job of a record; null if the record has ended or is gone. */
  due(tenant: string, id: string): Promise<DueJob | null>;
  /**
   * Settles a record whose job is dead. `over`: the record has failed. `again`: the job is to be retried. `later`: the operator has to
   * redrive the job, and the reconciler checks again later.
   */
  onDead(tenant: string, id: string, failure: JobFailure, diedAt: number): Promise<'over' | 'again' | 'later'>;
}

/** Entries younger than this are skipped: their job is probably just being added. */
const AGE_MS = 2_000;
/** Time until the next check of a record whose job exists. */
const ALIVE_AGAIN_MS = 5_000;
/** Time until the next check of a record that the operator has to settle, or whose check failed. */
const STUCK_AGAIN_MS = 60_000;
const BATCH = 500;

/**
 * One pass over the due outbox entries of one kind. An entry that fails is reported and retried later; the pass continues with the rest.
 *
 * @param now ms since 1970 by Redis
 * @param onFailure gets each error; if `onFailure` throws, for example because Redis is away, the pass ends
 * @returns how many jobs were added or retried, and records settled
 */
export async function reconcileWork(
  producer: Producer,
  work: DurableWork,
  now: number,
  onFailure: (error: unknown, entry: string) => void,
): Promise<number> {
  const { redis } = producer;
  const flat = await redis.zrangebyscore(work.outbox, '-inf', now - AGE_MS, 'WITHSCORES', 'LIMIT', 0, BATCH);
  let closed = 0;
  for (const [entry, score] of pairsOf(flat)) {
    let nextMs: number | null = STUCK_AGAIN_MS;
    try {
      const found = await reconcileEntry(producer, work, entry, now);
      nextMs = found.nextMs;
      if (found.isClosed) closed += 1;
    } catch (error) {
      onFailure(error, entry);
    }
    await runScript(redis, 'moveEntry', [work.outbox], [entry, score, nextMs === null ? '' : now + nextMs]);
  }
  return closed;
}

/** @returns ms until the next check, or null if the entry leaves the outbox; and whether a job or record was changed */
async function reconcileEntry(
  producer: Producer,
  work: DurableWork,
  entry: string,
  now: number,
): Promise<{ readonly nextMs: number | null; readonly isClosed: boolean }> {
  const address = parseMember(entry);
  const due = address && (await work.due(address.tenant, address.id));
  if (!due) return { nextMs: null, isClosed: false };
  if (due.notBefore !== undefined && due.notBefore > now) return { nextMs: due.notBefore - now, isClosed: false };
  const queue = producer.queue(work.queue.name);
  const job = (await queue.getJob(work.queue.jobId(due.payload))) as Job | undefined;
  if (job && !job.finishedOn) {
    // The line of waiting rollouts may have changed while the job was added. Then the job's priority is out of date.
    const { priority = Infinity } = due.options ?? {};
    if (job.priority > priority) await job.changePriority({ priority });
    return { nextMs: ALIVE_AGAIN_MS, isClosed: false };
  }
  const death = job && deathOf(job);
  if (death) {
    const outcome = await work.onDead(address.tenant, address.id, death, job.finishedOn ?? 0);
    if (outcome === 'later') return { nextMs: STUCK_AGAIN_MS, isClosed: false };
    if (outcome === 'over') return { nextMs: null, isClosed: true };
    await reviveJob(producer, queue, job);
  } else {
    await job?.remove();
    await producer.add(work.queue, due.payload, due.options);
  }
  return { nextMs: ALIVE_AGAIN_MS, isClosed: true };
}

/** Durable work whose records are stored as one JSON text each. */
export interface RecordKind<S extends z.ZodType> {
  readonly schema: S;
  /** Name of one record in messages, such as "erasure". */
  readonly what: string;
  readonly outbox: string;
  readonly key: (tenant: string, id: string) => string;
  readonly queue: QueueDeclaration;
  /** Payload of the record's job; null if the record has ended. */
  readonly job: (record: z.infer<S>) => object | null;
  /** Name of the method in the keys of request ids, and how long request ids are kept. */
  readonly method: string;
  readonly requestKeptMs: number;
}

export interface RequestedRecord<S extends z.ZodType> {
  readonly tenant: string;
  readonly id: string;
  readonly record: z.infer<S>;
  /** Empty: every call makes a new record. */
  readonly requestId: string;
  /** Content of the request. A repeat with the same request id must have the same content. */
  readonly asked: unknown;
}

/** @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class Records<S extends z.ZodType> {
  constructor(
    private readonly producer: Producer,
    readonly kind: RecordKind<S>,
  ) {}

  work(onDead: DurableWork['onDead']): DurableWork {
    const { what, outbox, queue } = this.kind;
    const due = async (tenant: string, id: string) => {
      const record = await this.get(tenant, id);
      const payload = record === null ? null : this.kind.job(record);
      return payload && { payload };
    };
    return { name: what, outbox, queue, due, onDead };
  }

  /**
   * Writes a record with its request id and its outbox entry, all or nothing, then adds its job. The record is durable when this
   * returns. A repeated request returns the first record.
   *
   * @throws EtudeError ALREADY_EXISTS if the request id was used for something else; NOT_FOUND if its record is no longer kept
   */
  async create({ tenant, id, record, requestId, asked }: RequestedRecord<S>): Promise<z.infer<S>> {
    const { keys, redis } = this.producer;
    const { key, method, outbox, what, queue, requestKeptMs, job } = this.kind;
    const places = [key(tenant, id), requestId ? keys.request(tenant, method, requestId) : '', outbox];
    const args = [id, contentDigest(asked), JSON.stringify(record), requestKeptMs, memberOf(tenant, id)];
    const [outcome, first] = await runScript<[string, string]>(redis, 'createRecord', places, args);
    if (outcome === 'other') throw requestIdTaken(requestId, `${what} ${first}`, {});
    const stored = await this.#first(tenant, requestId, first);
    const payload = job(stored);
    if (payload !== null) await this.producer.addForRecord(queue, payload);
    return stored;
  }

  /** The record that an earlier call with this request id made, or null. @throws EtudeError as `create` */
  async earlier({ tenant, requestId, asked }: Omit<RequestedRecord<S>, 'id' | 'record'>): Promise<z.infer<S> | null> {
    const { keys, redis } = this.producer;
    const { method, what } = this.kind;
    const known = requestId === '' ? null : await whileRedisAnswers(redis, redis.get(keys.request(tenant, method, requestId)));
    const [digest, id = ''] = (known ?? '').split(' ');
    if (!digest) return null;
    if (digest !== contentDigest(asked)) throw requestIdTaken(requestId, `${what} ${id}`, {});
    return this.#first(tenant, requestId, id);
  }

  async #first(tenant: string, requestId: string, id: string): Promise<z.infer<S>> {
    const stored = await this.get(tenant, id);
    if (stored !== null) return stored;
    throw new EtudeError('NOT_FOUND', `${this.kind.what} ${id} of request_id "${requestId}" is no longer kept; use a new request_id`);
  }

  /** null if there is no record. Drops fields that a later version added. In an erasure's subject they are an error, as they may narrow it. */
  async get(tenant: string, id: string): Promise<z.infer<S> | null> {
    const { redis } = this.producer;
    const text = await whileRedisAnswers(redis, redis.get(this.kind.key(tenant, id)));
    return text ? parseOr(this.kind.schema, parsedJson(text), 'INTERNAL', `the record of ${this.kind.what} ${id}`) : null;
  }
}

/** The error for a request id that was used with other content. @param used names what the first request made */
export function requestIdTaken(requestId: string, used: string, metadata: Readonly<Record<string, string>>): EtudeError {
  const message = `request_id "${requestId}" was used for ${used} with other content; use a new request_id for a new request`;
  return new EtudeError('ALREADY_EXISTS', message, { field: 'request_id', metadata });
}
