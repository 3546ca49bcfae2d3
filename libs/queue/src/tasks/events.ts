import { EtudeError } from '@etude/contracts/errors';
import type { TaskEvent } from '@etude/contracts/task';
import type { Redis } from 'ioredis';
import { Bell, channelsOf } from '../redis/channels.js';
import type { RedisKeys } from '../redis/keys.js';
import { whileRedisAnswers } from '../redis/redis.js';

export interface StoredEvent {
  /** Pass it as `afterId` to get the events after this one. */
  readonly id: string;
  readonly event: TaskEvent;
  /** ms since 1970. */
  readonly at: number;
}

/** The most events that are read at once and held for one reader. */
const BATCH = 100;
/** How often a waiting reader polls for events, in case a message was lost. */
const LOOK_EVERY_MS = 15_000;

/**
 * Reads a task's events in order, past and future ones, until `finished` or until `signal` aborts.
 *
 * Only one batch is held for a slow reader. Waiting readers share one connection. A worker's connection waits out an outage.
 * @param afterId id of the last event seen; empty for all events
 * @throws EtudeError INVALID_ARGUMENT for a malformed id; NOT_FOUND where the task has no events, since it is unknown or expired;
 * QUEUE_UNAVAILABLE in an outage on a producer's connection, after which the caller can resume behind the last event
 */
export async function* readEvents(
  redis: Redis,
  keys: RedisKeys,
  tenant: string,
  taskId: string,
  afterId: string,
  signal: AbortSignal,
): AsyncGenerator<StoredEvent, void, undefined> {
  let last = checkedId(afterId);
  const bell = new Bell(LOOK_EVERY_MS);
  let release: (() => void) | null = null;
  try {
    while (!signal.aborted) {
      const batch = await readBatch(redis, keys.events(tenant, taskId), last);
      for (const stored of batch) {
        if (signal.aborted) return;
        yield stored;
        if (stored.event.type === 'finished') return;
        last = stored.id;
      }
      if (batch.length === BATCH) continue;
      if (batch.length === 0 && (await isOver(redis, keys, tenant, taskId, last))) return;
      if (release) await bell.rung(signal);
      else release = await channelsOf(redis).listen(keys.wake(tenant, taskId), bell.ring);
    }
  } finally {
    release?.();
  }
}

function checkedId(afterId: string): string {
  if (afterId === '') return '0-0';
  if (/^\d{1,19}-\d{1,19}$/.test(afterId)) return afterId;
  throw new EtudeError('INVALID_ARGUMENT', 'resume_token is not from this service; pass the resume_token of an event unchanged, or none', {
    field: 'resume_token',
  });
}

async function readBatch(redis: Redis, stream: string, after: string): Promise<StoredEvent[]> {
  const entries = await whileRedisAnswers(redis, redis.xrange(stream, `(${after}`, '+', 'COUNT', BATCH));
  return entries.map(([id, fields]) => ({ id, event: JSON.parse(fields[1] ?? 'null') as TaskEvent, at: Number(id.split('-')[0]) }));
}

/** Whether the reader has seen the last event already. @throws EtudeError NOT_FOUND where the task has no events */
async function isOver(redis: Redis, keys: RedisKeys, tenant: string, taskId: string, last: string): Promise<boolean> {
  const reads = Promise.all([redis.hget(keys.task(tenant, taskId), 'finishedEvent'), redis.exists(keys.events(tenant, taskId))]);
  const [end, there] = await whileRedisAnswers(redis, reads);
  if (!there) throw new EtudeError('NOT_FOUND', `task ${taskId} has no events; it does not exist, or its retention has expired`);
  return end !== null && !isBefore(last, end);
}

function isBefore(a: string, b: string): boolean {
  const [aMs = 0n, aN = 0n] = a.split('-').map(BigInt);
  const [bMs = 0n, bN = 0n] = b.split('-').map(BigInt);
  return aMs < bMs || (aMs === bMs && aN < bN);
}
