import type { IncomingMessage } from 'node:http';
import { EtudeError } from '@etude/contracts/errors';

/** Bodies up to this size don't count against `readingMax`. */
const SMALL_BYTES = 64 * 1024;
/** The field name in errors about the whole body. */
export const BODY = '(body)';

export interface BodyLimits {
  /** Maximum of large bodies that are read at once. */
  readonly readingMax: number;
  /** How long to wait for the next part of a body. */
  readonly idleMs: number;
}

/** Reads request bodies, with limits on their number, size and idle time. */
export class BodyReader {
  #reading = 0;

  constructor(private readonly limits: BodyLimits = { readingMax: 8, idleMs: 30_000 }) {}

  /** @throws EtudeError as `chunks` */
  async whole(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
    return Buffer.concat(await Array.fromAsync(this.chunks(request, bytesMax)));
  }

  /**
   * The parts of a body, read no faster than they are consumed.
   *
   * @throws EtudeError PAYLOAD_TOO_LARGE, at once if the announced size is too large; MEMORY_UNAVAILABLE if too many are read;
   *   DEADLINE_EXCEEDED if it stalls
   */
  async *chunks(request: IncomingMessage, bytesMax: number): AsyncGenerator<Buffer> {
    const announced = Number(request.headers['content-length'] ?? Number.NaN);
    if (announced > bytesMax) throw tooLarge(bytesMax);
    const turns = announced <= SMALL_BYTES ? 0 : 1;
    if (turns > 0 && this.#reading >= this.limits.readingMax) {
      const message = 'Too many large bodies are being read at once; send this one again a little later.';
      throw new EtudeError('MEMORY_UNAVAILABLE', message, { retryAfterMs: 1_000 });
    }
    this.#reading += turns;
    const incoming = (request as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    try {
      let size = 0;
      for (let next = await this.#next(incoming); !next.done; next = await this.#next(incoming)) {
        size += next.value.byteLength;
        if (size > bytesMax) throw tooLarge(bytesMax);
        yield next.value;
      }
    } finally {
      this.#reading -= turns;
    }
  }

  async #next(incoming: AsyncIterator<Buffer>): Promise<IteratorResult<Buffer, unknown>> {
    const { idleMs } = this.limits;
    const { promise, reject } = Promise.withResolvers<never>();
    const message = `Nothing of the body came for ${idleMs / 1_000} s; send it again, without a pause.`;
    const timer = setTimeout(() => reject(new EtudeError('DEADLINE_EXCEEDED', message, { field: BODY })), idleMs);
    try {
      return await Promise.race([incoming.next(), promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}

const tooLarge = (bytesMax: number) =>
  new EtudeError('PAYLOAD_TOO_LARGE', `The body of this call may have ${bytesMax} bytes; send less at once.`);

/** @throws EtudeError INVALID_ARGUMENT if the body isn't UTF-8 */
export function textOf(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new EtudeError('INVALID_ARGUMENT', 'The body is not UTF-8 text.');
  }
}
