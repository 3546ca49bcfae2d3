import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { channelsOf } from '../redis/channels.js';
import { memberOf, type RedisKeys } from '../redis/keys.js';

/** A lost message (a reconnect, a restart of Redis) costs at most this long. */
const LOOK_EVERY_MS = 1_000;

/**
 * News of an execution: its result as JSON; its end without one; or only that it is time to look at the store.
 */
export type Heard = { readonly kind: 'result'; readonly text: string } | { readonly kind: 'ended' | 'look' };

const LOOK: Heard = { kind: 'look' };

/** The news of one execution for one caller. News that came before `next` is kept. */
export class ExecutionListener {
  #heard: Heard | null = null;
  #wake: (() => void) | null = null;

  constructor(readonly release: () => void) {}

  /** Between two waits a result counts most, and a mere look least. */
  hear(heard: Heard): void {
    if (this.#heard === null || this.#heard.kind === 'look' || heard.kind === 'result') this.#heard = heard;
    this.#wake?.();
  }

  async next(): Promise<Heard> {
    if (this.#heard === null) await new Promise<void>((resolve) => (this.#wake = resolve));
    const heard = this.#heard ?? LOOK;
    this.#heard = null;
    this.#wake = null;
    return heard;
  }
}

/**
 * Answers to the executions that this process waits for. Each request names this process's channel; the saver of the result publishes it
 * there. One connection serves any number of waiters.
 */
export class ExecutionAnswers {
  readonly channel: string;
  /** By `<tenant>/<execution>`. */
  readonly #listeners = new EventEmitter().setMaxListeners(0);
  #subscribed: Promise<unknown> | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly redis: Redis,
    keys: RedisKeys,
  ) {
    this.channel = keys.executionAnswers(randomUUID());
    redis.once('end', () => this.#stopTimer());
  }

  /** Resolves once answers are heard; waits for Redis. Where it refuses, the next call asks anew. */
  async ready(): Promise<void> {
    this.#subscribed ??= channelsOf(this.redis).listen(this.channel, (message) => this.#hear(message));
    try {
      await this.#subscribed;
    } catch (error) {
      this.#subscribed = null;
      throw error;
    }
  }

  /** Call its `release` once. */
  listen(tenant: string, executionId: string): ExecutionListener {
    const key = memberOf(tenant, executionId);
    const hear = (heard: Heard) => listener.hear(heard);
    const listener = new ExecutionListener(() => {
      this.#listeners.off(key, hear);
      if (this.#listeners.eventNames().length === 0) this.#stopTimer();
    });
    this.#listeners.on(key, hear);
    this.#timer ??= setInterval(() => this.#hear(null), LOOK_EVERY_MS);
    return listener;
  }

  /** `<tenant>/<execution>` in one line, and its result in a second where there is one to hand over. null: all have to look. */
  #hear(message: string | null): void {
    if (message === null) return this.#listeners.eventNames().forEach((key) => this.#listeners.emit(key, LOOK));
    const cut = message.indexOf('\n');
    if (cut < 0) this.#listeners.emit(message, { kind: 'ended' } satisfies Heard);
    else this.#listeners.emit(message.slice(0, cut), { kind: 'result', text: message.slice(cut + 1) } satisfies Heard);
  }

  #stopTimer(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }
}

const ANSWERS = new WeakMap<Redis, ExecutionAnswers>();

/** Those of a connection; closed with it. */
export function answersOf(redis: Redis, keys: RedisKeys): ExecutionAnswers {
  const known = ANSWERS.get(redis);
  if (known) return known;
  const answers = new ExecutionAnswers(redis, keys);
  ANSWERS.set(redis, answers);
  return answers;
}
