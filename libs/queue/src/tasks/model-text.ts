import type { Redis } from 'ioredis';
import { channelsOf } from '../redis/channels.js';

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

  /** Publishes what was added. The messages arrive before those of every later command on this connection. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [step, whole] of this.#texts) for (const text of whole.match(MESSAGE) ?? []) this.#publish({ step, text });
    this.#texts.clear();
  }

  #publish(text: ModelText): void {
    // Live text may be lost. In an outage the messages would pile up on the connection.
    if (this.redis.status === 'ready') this.redis.publish(this.channel, JSON.stringify(text)).catch(() => undefined);
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

  /** The oldest text, which is then taken; undefined where there is none. */
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

/** Calls `listener` with each text published from now on. @returns a function that ends this */
export function listenToText(redis: Redis, channel: string, listener: (text: ModelText) => void): Promise<() => void> {
  return channelsOf(redis).listen(channel, (message) => message !== null && listener(JSON.parse(message) as ModelText));
}
