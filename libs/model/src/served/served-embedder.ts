import { once } from 'node:events';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { arrayBuffer } from 'node:stream/consumers';
import { abortError, type ErrorCode, EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/model';
import { type RetryPolicy, withRetries } from '../retry.js';
import { SENTENCE_PROFILE, TEXT_CHARS_MAX } from '../sentence/sentence-embedder.js';

/** Longer than the launcher needs to start the process again. */
const PATIENCE: RetryPolicy = { attemptsMax: 1_000, waitTotalMaxMs: 20_000 };

/**
 * The sentence model of an embedding process on this machine. Its connections keep this process alive only while a call waits.
 *
 * A call is repeated if the process ends meanwhile, since the same texts give the same vectors.
 */
export class ServedEmbedder implements Embedder {
  readonly profile = SENTENCE_PROFILE;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(
    private readonly path: string,
    private readonly patience = PATIENCE,
  ) {}

  /** @throws EtudeError MODEL_UNAVAILABLE where no process answers within 20 s, or its model can't be loaded; an AbortError */
  async embed(texts: readonly string[], signal: AbortSignal = new AbortController().signal): Promise<readonly Float32Array[]> {
    if (signal.aborted) throw abortError(signal);
    if (texts.length === 0) return [];
    const body = JSON.stringify(texts.map((text) => text.slice(0, TEXT_CHARS_MAX)));
    const { status, content } = await withRetries(() => this.#ask(body, signal), signal, this.patience);
    if (status !== 200) {
      const { code, message } = JSON.parse(Buffer.from(content).toString()) as { readonly code: ErrorCode; readonly message: string };
      throw new EtudeError(code, message);
    }
    const numbers = new Float32Array(content);
    const { dimension } = this.profile;
    // Copies, because a view of one vector would keep all vectors of the call in memory.
    return texts.map((_, i) => numbers.slice(i * dimension, (i + 1) * dimension));
  }

  /** Closes the connections. The next call opens another one. */
  close(): void {
    this.#agent.destroy();
  }

  async #ask(body: string, signal: AbortSignal): Promise<{ readonly status: number | undefined; readonly content: ArrayBuffer }> {
    try {
      const request = httpRequest({ socketPath: this.path, method: 'POST', agent: this.#agent, signal });
      request.on('error', () => undefined); // the error also reaches the promises below
      request.end(body);
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      return { status: answer.statusCode, content: await arrayBuffer(answer) };
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      const why = error instanceof Error ? error.message : String(error);
      throw new EtudeError('MODEL_UNAVAILABLE', `The embedding process at ${this.path} doesn't answer: ${why}.`, {}, { cause: error });
    }
  }
}
