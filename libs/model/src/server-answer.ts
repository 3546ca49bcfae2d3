import { EtudeError } from '@etude/contracts/errors';
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { faultError, faultIn, retryAfterMs, type ServerContext } from './server-errors.js';

/** Parses JSON; undefined where the text is none. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How long a body may go on after the answer is complete. Then its connection is closed instead of used again. */
const REST_MS = 500;

export const isSilence = (error: unknown) => /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/.test(String((error as { code?: unknown }).code));

export class ServerAnswer {
  #rest: NodeJS.Timeout | undefined;

  /** @param typed returns the error to throw for a failed read */
  constructor(
    private readonly response: Dispatcher.ResponseData,
    private readonly signal: AbortSignal,
    private readonly typed: (error: unknown) => unknown,
  ) {}

  get headers(): IncomingHttpHeaders {
    return this.response.headers;
  }

  /**
   * The text of the body as it arrives. If the connection breaks, the text just ends: the reader decides whether it is complete. A reader
   * that stops early closes the connection.
   *
   * @throws EtudeError MODEL_UNAVAILABLE after a long silence or a call that took too long; an AbortError
   */
  async *text(): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.response.body) yield decoder.decode(bytes as Buffer, { stream: true });
    } catch (error) {
      if (this.signal.aborted || isSilence(error)) throw this.typed(error);
    } finally {
      clearTimeout(this.#rest);
      // One turn of the event loop frees the connection. Then the next call can use it.
      await setImmediate();
    }
  }

  /** The text of the body; reading stops once it is longer than `charsMax`. */
  async whole(charsMax: number): Promise<string> {
    let text = '';
    for await (const part of this.text()) if ((text += part).length > charsMax) break;
    return text;
  }

  /** Call it when everything needed has arrived: the rest of the body, such as the usage, gets REST_MS. */
  finishSoon(): void {
    this.#rest ??= setTimeout(() => this.response.body.destroy(), REST_MS);
  }
}

const ERROR_CHARS_MAX = 65_536;

/** The error for a refused call. Servers give the reason in `error.message`, `error`, `message`, `detail` or as plain text. */
export async function refusal(status: number, answer: ServerAnswer, context: ServerContext): Promise<EtudeError> {
  const text = await answer.whole(ERROR_CHARS_MAX);
  const { headers } = answer;
  const value = parsedJson(text);
  const body = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  const said = [body?.['error'], body?.['message'], body?.['detail']].find((part) => typeof part === 'string' || typeof part === 'object');
  const plain = body ? text : text.replace(/<(style|script|head)[\s\S]*?<\/\1>|<[^>]*>/g, ' ');
  const { message, code = body?.['code'] } = faultIn(said ?? { message: plain }) as { message: string; code?: unknown };
  const after = retryAfterMs(headers, Date.now());
  return faultError(
    {
      status,
      message,
      ...(typeof code === 'string' ? { code } : {}),
      ...(after === undefined ? {} : { retryAfterMs: after }),
      ...(headers.location ? { location: headers.location } : {}),
    },
    context,
  );
}
