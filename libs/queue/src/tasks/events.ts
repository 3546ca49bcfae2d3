import { EtudeError, unlessAborted } from '@etude/contracts/errors';
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

/** Text that a model writes. It isn't stored: its id is the id of the stored event before it. */
export interface TextEvent extends Pick<StoredEvent, 'id' | 'at'> {
  readonly event: ModelText & { readonly type: 'model_text' };
}

/** The most events that are read at once and held for one reader. */
const BATCH = 100;
/** How often a waiting reader polls for events, because a message may be lost. */
const LOOK_EVERY_MS = 15_000;

export interface Reading {
  readonly tenant: string;
  readonly taskId: string;
  /** Id of the last event seen; null for all events. */
  readonly afterId: string | null;
  /** Also gives the model's text while the model writes it, before the event of its step. */
  readonly withText?: boolean;
}

/**
 * Reads a task's past and future events in order, until `finished`.
 *
 * Only one batch is held for a slow reader. Waiting readers share one connection. A worker's connection waits until an outage ends.
 * @throws EtudeError NOT_FOUND if the task is unknown or expired;
 * QUEUE_UNAVAILABLE in an outage on a producer's connection: the caller can resume after the last event;
 * the signal's reason as soon as it aborts
 */
export async function* readEvents(
  redis: Redis,
  keys: RedisKeys,
  { tenant, taskId, afterId, withText = false }: Reading,
  signal: AbortSignal,
): AsyncGenerator<StoredEvent | TextEvent, void, undefined> {
  const texts: ModelText[] = [];
  const answer = <T>(work: Promise<T>) => unlessAborted(whileRedisAnswers(redis, work), signal);
  const listenings: Listening[] = [];
  const heard = async (listening: Listening) => answer((listenings.push(listening), listening.ready));
  const bell = new Bell(LOOK_EVERY_MS);
  const hear = (text: ModelText) => {
    addText(texts, text);
    bell.ring();
  };
  let id = afterId ?? '0-0';
  try {
    if (withText) await heard(listenToText(redis, keys.text(tenant, taskId), hear));
    for (let isWoken = false; ;) {
      const batch = await answer(readBatch(redis, keys.events(tenant, taskId), id));
      for (let text = texts.shift(); text; text = texts.shift()) yield { id, at: Date.now(), event: { type: 'model_text', ...text } };
      for (const stored of batch) {
        signal.throwIfAborted();
        yield stored;
        if (stored.event.type === 'finished') return;
        id = stored.id;
      }
      if (batch.length === BATCH) continue;
      if (batch.length === 0 && (await answer(isOver(redis, keys, tenant, taskId, id)))) return;
      if (isWoken) await bell.rung(signal);
      else await heard(channelsOf(redis).listen(keys.wake(tenant, taskId), bell.ring));
      isWoken = true;
    }
  } finally {
    for (const listening of listenings) listening[Symbol.dispose]();
  }
}

async function readBatch(redis: Redis, stream: string, after: string): Promise<StoredEvent[]> {
  const entries = await redis.xrange(stream, `(${after}`, '+', 'COUNT', BATCH);
  return entries.map(([id, fields]) => ({ id, event: JSON.parse(fields[1] ?? 'null') as TaskEvent, at: Number(id.split('-')[0]) }));
}

/** Whether the reader has seen the last event already. @throws EtudeError NOT_FOUND if the task has no events */
async function isOver(redis: Redis, keys: RedisKeys, tenant: string, taskId: string, last: string): Promise<boolean> {
  const reads = [redis.hget(keys.task(tenant, taskId), 'finishedEvent'), redis.exists(keys.events(tenant, taskId))] as const;
  const [end, there] = await Promise.all(reads);
  if (!there) throw new EtudeError('NOT_FOUND', `task ${taskId} does not exist, or is deleted because its retention time is over`);
  return end === last;
}

export interface ModelText {
  readonly step: string;
  readonly text: string;
}

const EVERY_MS = 100;
/** The most text of one message, in characters. */
const MESSAGE = /.{1,4096}/gsu;
const MESSAGE_CHARS = 4_096;
/** The most messages kept for one reader. */
const TEXTS_MAX = 64;
const LEFT_OUT = '[...]';

/** Publishes the model's text of one rollout, every 100 ms or 4,096 characters. Text is lost if nobody listens or Redis is away. */
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

  /** Publishes the added text. Its messages arrive before the message of any later command on this connection. */
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

/** Adds a text to the pending texts of one reader. If the reader is slow, the oldest text is dropped. */
export function addText(pending: ModelText[], text: ModelText): void {
  pending.push(text);
  const [, second] = pending;
  if (second && pending.length > TEXTS_MAX) pending.splice(0, 2, { ...second, text: LEFT_OUT + second.text });
}

/** Calls `listener` with each text that is published after `ready` has resolved. */
export function listenToText(redis: Redis, channel: string, listener: (text: ModelText) => void): Listening {
  return channelsOf(redis).listen(channel, (message) => message !== null && listener(JSON.parse(message) as ModelText));
}
