import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import type { z } from 'zod';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** After the answer is complete, its body may continue for this time. Then the connection is closed and not used again. */
const REST_MS = 500;

export class ServerAnswer {
  #rest: NodeJS.Timeout | undefined;

  /** @param signal aborts the call @param typed returns the error to throw if `signal` aborted a read */
  constructor(
    private readonly response: IncomingMessage,
    private readonly signal: AbortSignal,
    private readonly typed: (error: unknown) => unknown,
  ) {}

  get headers(): IncomingHttpHeaders {
    return this.response.headers;
  }

  /**
   * The text of the body as it arrives. If the connection breaks, the text just ends, and the reader decides whether it is complete. If the
   * reader stops early, the connection is closed.
   *
   * @throws EtudeError MODEL_UNAVAILABLE after a long silence or a call that took too long; an AbortError
   */
  async *text(): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.response) yield decoder.decode(bytes as Buffer, { stream: true });
    } catch (error) {
      if (this.signal.aborted) throw this.typed(error);
    } finally {
      clearTimeout(this.#rest);
    }
  }

  async whole(charsMax: number): Promise<string> {
    let text = '';
    for await (const part of this.text()) if ((text += part).length > charsMax) break;
    return text;
  }

  /** Closes the body after REST_MS. Call it when the answer is complete; the rest of the body, such as the usage, may still arrive. */
  finishSoon(): void {
    this.#rest ??= setTimeout(() => this.response.destroy(), REST_MS);
  }
}

const ERROR_CHARS_MAX = 65_536;

/** The error for a refused call. Servers send the reason in `error.message`, `error`, `message` or `detail`, or as plain text. */
export async function refusal(status: number, answer: ServerAnswer, context: ServerContext): Promise<EtudeError> {
  const text = await answer.whole(ERROR_CHARS_MAX);
  const { headers } = answer;
  const value = parsedJson(text);
  const body = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  const said = [body?.['error'], body?.['message'], body?.['detail']].find((part) => typeof part === 'string' || typeof part === 'object');
  const { message, code = body?.['code'] } = faultIn(said ?? { message: text }) as { message: string; code?: unknown };
  return faultError({ status, message, code: textIn(code), retryAfterMs: retryAfterMs(headers, Date.now()) }, context);
}

export interface ServerContext {
  readonly baseUrl: string;
  /** The key. It is removed from all quotes of the server's messages. */
  readonly apiKey?: string;
  /** Names of the settings that a message tells the reader to check. */
  readonly settings: { readonly baseUrl: string; readonly apiKey: string; readonly model: string };
}

/** An error that a server reported, by its status or in an answer with status 200. */
export interface ServerFault {
  readonly status: number;
  readonly message: string;
  readonly code?: string;
  readonly retryAfterMs?: number;
}

const MESSAGE_CHARS_MAX = 300;
/** 501 is not retryable, because the server doesn't support the request. */
const RETRYABLE = (status: number) =>
  status === 408 || status === 409 || status === 425 || (status >= 500 && status !== 501 && status !== 505);

/** The base URL without user, password and query, which may be secret. */
function shownUrl(baseUrl: string): string {
  const url = new URL(baseUrl);
  return `${url.protocol}//${url.host}${url.pathname}`.replace(/\/$/, '');
}

export const serverName = (context: ServerContext) => `The model server at ${shownUrl(context.baseUrl)}`;

/** A server's message on one line, without the API key, cut to 300 characters. */
export function quoted(message: string, { apiKey }: ServerContext): string {
  const clean = (apiKey ? message.replaceAll(apiKey, '[key]') : message).replace(/\s+/g, ' ').trim();
  return clean.length > MESSAGE_CHARS_MAX ? `${clean.slice(0, MESSAGE_CHARS_MAX)}…` : clean;
}

export function faultError(fault: ServerFault, context: ServerContext): EtudeError {
  const code = codeOf(fault);
  const said = quoted(fault.message, context);
  // If no rule of a script fits, the server's message already says what to do.
  const advice = code === 'MODEL_REFUSED' && fault.code !== 'no_rule' ? ` ${refusalAdvice(fault, context)}` : '';
  const message = `${serverName(context)} answered ${fault.status}${said ? `: ${endSentence(said)}` : '.'}${advice}`;
  return new EtudeError(code, message, { retryAfterMs: fault.retryAfterMs, metadata: { status: String(fault.status), said } });
}

function codeOf({ status, code }: ServerFault): ErrorCode {
  if (status === 429) return code === 'insufficient_quota' ? 'MODEL_REFUSED' : 'MODEL_RATE_LIMITED';
  return RETRYABLE(status) ? 'MODEL_UNAVAILABLE' : 'MODEL_REFUSED';
}

function refusalAdvice({ status }: ServerFault, { settings }: ServerContext): string {
  if (status >= 300 && status < 400) return `The server redirects. Set ${settings.baseUrl} to the new address.`;
  if (status === 401 || status === 403) return `Check ${settings.apiKey}.`;
  if (status === 402 || status === 429) return `The account behind ${settings.apiKey} has no credit left. Check its billing.`;
  if (status === 404 || status === 405 || status === 501)
    return `Check ${settings.baseUrl} (it usually ends with /v1) and ${settings.model}.`;
  if (status === 413) return 'The request is too large for this server. Make the prompt shorter.';
  return `Check whether the model in ${settings.model} supports this request.`;
}

const endSentence = (text: string) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** Reads `retry-after-ms`, or `retry-after` in seconds or as a date. undefined if neither has a usable value. */
function retryAfterMs(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const ms = Number.parseFloat(String(headers['retry-after-ms']));
  if (ms >= 0) return ms;
  const text = headers['retry-after']?.trim();
  if (!text) return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Number.parseFloat(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** @param error the value of `error` in an answer; servers send it in different forms */
export function faultIn(error: unknown): ServerFault {
  if (typeof error === 'string') return { status: 500, message: error };
  const { message, code, status, type } = (error ?? {}) as Record<string, unknown>;
  const number = [status, code].map(Number).find((value) => value >= 400 && value < 600);
  const limited = [code, type].some((word) => typeof word === 'string' && /rate_limit/.test(word));
  return { status: number ?? (limited ? 429 : 500), message: textIn(message) ?? JSON.stringify(error), code: textIn(code) };
}

const textIn = (value: unknown) => (typeof value === 'string' ? value : undefined);

/**
 * Reads a whole answer of one JSON document.
 *
 * @param asked the purpose of the request, such as "to rerank", for messages
 * @throws EtudeError MODEL_ANSWER_TRUNCATED (retryable) for text that is not JSON; MODEL_REFUSED for other JSON; the server's own error
 */
export function readDocument<T>(schema: z.ZodType<T>, text: string, asked: string, context: ServerContext): T {
  const value = parsedJson(text);
  const said = `${serverName(context)} answered a request ${asked}`;
  if (value === undefined) throw new EtudeError('MODEL_ANSWER_TRUNCATED', `${said} with text that is not JSON: ${quoted(text, context)}`);
  const { error } = (value ?? {}) as { error?: unknown };
  if (error !== undefined && error !== null) throw faultError(faultIn(error), context);
  const { success, data } = schema.safeParse(value);
  if (success) return data;
  throw new EtudeError(
    'MODEL_REFUSED',
    `${said} with JSON of an unknown form: ${endSentence(quoted(text, context))} Check ${context.settings.baseUrl}.`,
  );
}
