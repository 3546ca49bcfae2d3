import type { IncomingMessage } from 'node:http';
import { EtudeError } from '@etude/contracts/errors';
import { BODY } from './http-door.js';

/** A body of at most so many bytes takes no turn: many of them at once are no burden. */
const SMALL_BYTES = 64 * 1024;

export interface BodyLimits {
  /** Larger bodies that are read at once. */
  readonly readingMax: number;
  /** How long a body may stand still. */
  readonly idleMs: number;
}

/** Reads bodies of requests: so many at once, each within its size, and none that stands still. */
export class BodyReader {
  readonly #limits: BodyLimits;
  #reading = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** @throws EtudeError as `chunks` */
  async whole(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const chunk of this.chunks(request, bytesMax)) parts.push(chunk);
    return Buffer.concat(parts);
  }

  /**
   * The body as it comes, no faster than it is taken.
   *
   * @throws EtudeError PAYLOAD_TOO_LARGE as soon as its announced size says so; MEMORY_UNAVAILABLE where too many are read; DEADLINE_EXCEEDED where it stands still
   */
  async *chunks(request: IncomingMessage, bytesMax: number): AsyncGenerator<Buffer> {
    const announced = Number(request.headers['content-length'] ?? Number.NaN);
    if (announced > bytesMax) throw tooLarge(bytesMax);
    const isSmall = announced <= SMALL_BYTES;
    if (!isSmall && this.#reading >= this.#limits.readingMax) throw busy();
    this.#reading += isSmall ? 0 : 1;
    try {
      yield* this.#within(request, bytesMax);
    } finally {
      this.#reading -= isSmall ? 0 : 1;
    }
  }

  async *#within(request: IncomingMessage, bytesMax: number): AsyncGenerator<Buffer> {
    const incoming = (request as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    let size = 0;
    for (let next = await this.#next(incoming); !next.done; next = await this.#next(incoming)) {
      size += next.value.byteLength;
      if (size > bytesMax) throw tooLarge(bytesMax);
      yield next.value;
    }
  }

  async #next(incoming: AsyncIterator<Buffer>): Promise<IteratorResult<Buffer, unknown>> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(stalled(this.#limits.idleMs)), this.#limits.idleMs);
    try {
      return await Promise.race([incoming.next(), promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function tooLarge(bytesMax: number): EtudeError {
  return new EtudeError('PAYLOAD_TOO_LARGE', `The body of this call may have ${bytesMax} bytes; send less at once.`);
}

function busy(): EtudeError {
  return new EtudeError('MEMORY_UNAVAILABLE', 'Too many large bodies are being read at once; send this one again a little later.', {
    retryAfterMs: 1_000,
  });
}

function stalled(idleMs: number): EtudeError {
  return new EtudeError('DEADLINE_EXCEEDED', `Nothing of the body came for ${idleMs / 1_000} s; send it again, without a pause.`, {
    field: BODY,
  });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Whether lists and objects in a JSON text are nested deeper than so many, told without parsing it. */
export function isDeeperThan(json: string, depthMax: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const char = json.charCodeAt(at);
    if (char === QUOTE) at = endOfText(json, at);
    else if (OPENING.has(char)) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (CLOSING.has(char)) depth -= 1;
  }
  return false;
}

/** Of the closing quote; the end of all where there is none. */
function endOfText(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    const char = json.charCodeAt(at);
    if (char === BACKSLASH) at += 1;
    else if (char === QUOTE) return at;
  }
  return json.length;
}
