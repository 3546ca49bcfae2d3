import { EtudeError } from '@etude/contracts/errors';
import type { TaskEvent } from '@etude/contracts/task';
import type { Redis } from 'ioredis';
import { Bell, channelsOf, type Listening } from '../redis/channels.js';
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
 * @throws EtudeError NOT_FOUND where the task has no events, since it is unknown or expired;
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
  let last = afterId || '0-0';
  const bell = new Bell(LOOK_EVERY_MS);
  let listening: Listening | null = null;
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
      if (listening) await bell.rung(signal);
      else await (listening = channelsOf(redis).listen(keys.wake(tenant, taskId), bell.ring)).ready;
    }
  } finally {
    listening?.[Symbol.dispose]();
  }
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

/** Text that a model has just written in one step of a rollout. */
export interface ModelText {
  readonly step: string;
  readonly text: string;
}

const EVERY_MS = 100;
/** The most text of one message, in characters. */
const MESSAGE = /.{1,4096}/gsu;
const MESSAGE_CHARS = 4_096;
/** The most text kept for one reader, in characters. */
const PENDING_CHARS = 65_536;
const LEFT_OUT = '[...]';

/** Publishes the model's text of one rollout, every 100 ms or 4,096 characters. Text is lost where nobody listens or Redis is away. */
export class TextPublisher {
  readonly #texts = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly redis: Redis,
    private readonly channel: string,
  ) {}

  readonly add = (step: string, text: string): void => {
    const whole = (this.#texts.get(step) ?? '') + text;
    this.#texts.set(step, whole);
    if (whole.length >= MESSAGE_CHARS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), EVERY_MS).unref();
  };

  /** Publishes what was added. The messages arrive before the messages of every later command on this connection. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const messages = [...this.#texts].flatMap(([step, whole]) => (whole.match(MESSAGE) ?? []).map((text): ModelText => ({ step, text })));
    this.#texts.clear();
    // Live text may be lost. In an outage the messages would pile up on the connection.
    if (this.redis.status !== 'ready') return;
    for (const message of messages) this.redis.publish(this.channel, JSON.stringify(message)).catch(() => undefined);
  }
}

/** The text that one reader has not taken yet. The oldest text is left out when the reader is slow. */
export class PendingText {
  readonly #texts: ModelText[] = [];
  #chars = 0;
  #isCut = false;

  add(text: ModelText): void {
    this.#texts.push(text);
    this.#chars += text.text.length;
    while (this.#chars > PENDING_CHARS && this.#shift()) this.#isCut = true;
  }

  /** Takes the oldest text; undefined if there is none. */
  next(): ModelText | undefined {
    const first = this.#shift();
    if (!first || !this.#isCut) return first;
    this.#isCut = false;
    return { ...first, text: LEFT_OUT + first.text };
  }

  #shift(): ModelText | undefined {
    const first = this.#texts.shift();
    this.#chars -= first?.text.length ?? 0;
    return first;
  }
}

/** Calls `listener` with each text that is published once it is ready. */
export function listenToText(redis: Redis, channel: string, listener: (text: ModelText) => void): Listening {
  return channelsOf(redis).listen(channel, (message) => message !== null && listener(JSON.parse(message) as ModelText));
}
