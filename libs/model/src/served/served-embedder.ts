import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { type Answered, type Asked, type Frame, onFrames, sendFrame } from '@etude/contracts/embedding-socket';
import { abortError, type ErrorCode, EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/model';
import { type RetryPolicy, withRetries } from '../retry.js';
import { SENTENCE_PROFILE, TEXT_CHARS_MAX } from '../sentence/sentence-profile.js';

type Answer = Frame<Answered>;
interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** Longer than the launcher needs to start the process again. */
const PATIENCE: RetryPolicy = { attemptsMax: 1_000, waitTotalMaxMs: 20_000 };

/**
 * The sentence model of an embedding process on this machine. One connection serves all calls; it is opened by the first one, and keeps
 * the process alive only while a call waits.
 *
 * A call is repeated if the process ends meanwhile, since the same texts give the same vectors.
 */
export class ServedEmbedder implements Embedder {
  readonly profile = SENTENCE_PROFILE;
  readonly #waiting = new Map<number, Waiting>();
  #connection: Promise<Socket> | null = null;
  #lastId = 0;

  constructor(
    private readonly path: string,
    private readonly patience = PATIENCE,
  ) {}

  /** @throws EtudeError MODEL_UNAVAILABLE where no process answers within 20 s, or its model can't be loaded; an AbortError */
  async embed(texts: readonly string[], signal: AbortSignal = new AbortController().signal): Promise<readonly Float32Array[]> {
    if (signal.aborted) throw abortError(signal);
    if (texts.length === 0) return [];
    const cut = texts.map((text) => text.slice(0, TEXT_CHARS_MAX));
    const { head, numbers } = await withRetries(() => this.#ask(cut, signal), signal, this.patience);
    if (head.error) throw new EtudeError(head.error.code as ErrorCode, head.error.message);
    const { dimension } = this.profile;
    // Copies, because a view of one vector would keep all vectors of the call in memory.
    return texts.map((_, i) => numbers.slice(i * dimension, (i + 1) * dimension));
  }

  /** Closes the connection. The next call opens another one. */
  async close(): Promise<void> {
    const socket = await this.#connection?.catch(() => null);
    socket?.destroy();
  }

  async #ask(texts: readonly string[], signal: AbortSignal): Promise<Answer> {
    const socket = await (this.#connection ??= this.#connect());
    if (signal.aborted) throw abortError(signal);
    const id = (this.#lastId += 1);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const giveUp = () => {
      sendFrame(socket, { cancel: id } satisfies Asked);
      reject(abortError(signal));
    };
    this.#waiting.set(id, { resolve, reject });
    socket.ref();
    signal.addEventListener('abort', giveUp, { once: true });
    sendFrame(socket, { id, texts } satisfies Asked);
    return promise.finally(() => {
      signal.removeEventListener('abort', giveUp);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) socket.unref();
    });
  }

  async #connect(): Promise<Socket> {
    const socket = createConnection({ path: this.path });
    let why: unknown = null;
    socket.on('error', (error) => (why = error));
    socket.once('close', () => {
      this.#connection = null;
      for (const { reject } of this.#waiting.values()) reject(this.#gone(why ?? new Error('it closed the connection')));
    });
    try {
      await once(socket, 'connect');
    } catch (error) {
      throw this.#gone(error);
    }
    onFrames<Answered>(socket, (answer) => this.#waiting.get(answer.head.id)?.resolve(answer));
    return socket;
  }

  #gone(error: unknown): EtudeError {
    const why = error instanceof Error ? error.message : String(error);
    return new EtudeError('MODEL_UNAVAILABLE', `The embedding process at ${this.path} doesn't answer: ${why}.`, {}, { cause: error });
  }
}
