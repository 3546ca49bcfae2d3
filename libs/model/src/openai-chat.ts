import { errorDetails } from '@etude/contracts/errors';
import type { ChatModel, ChatRequest, ChatResponse } from '@etude/domain/ports/model';
import { readAnswer } from './answer-reader.js';
import type { Answer } from './chat-answer.js';
import { type ConnectionOptions, OpenAiConnection, type Send } from './openai-connection.js';
import { approximateTokens, requestChars } from './chat-answer.js';

export interface OpenAiChatOptions extends ConnectionOptions {
  /** Absent: the first model that the server lists, else `default`. */
  readonly model?: string;
  /** US dollars per million tokens. */
  readonly priceInputUsdPerMtok: number;
  readonly priceOutputUsdPerMtok: number;
  /** The most text of an answer. A longer one is cut and has the finish reason `length`. */
  readonly answerBytesMax: number;
}

/**
 * A chat model behind any server that speaks OpenAI's chat completions, or a part of that protocol.
 *
 * Tokens are counted by the server, or estimated as characters / 4 where it gives no count. Retries: `retry.ts`.
 */
export class OpenAiChatModel implements ChatModel {
  readonly #connection: OpenAiConnection;
  #dialect: Dialect = FULL_DIALECT;
  #model: string | undefined;

  constructor(private readonly options: OpenAiChatOptions) {
    this.#model = options.model;
    this.#connection = new OpenAiConnection(options);
  }

  async chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
    const model = this.#model ?? (await this.#connection.firstModel(signal));
    const answer = await this.#connection.call((send) => this.#negotiate(request, model, send), signal);
    this.#model = model;
    return this.#response(request, model, answer);
  }

  close(): void {
    this.#connection.close();
  }

  /** Asks again in a simpler dialect when the server refuses a part of the protocol, and remembers the dialect that worked. */
  async #negotiate(request: ChatRequest, model: string, send: Send): Promise<Answer> {
    let dialect = this.#dialect;
    for (;;) {
      try {
        const answer = await this.#ask(request, model, dialect, send);
        this.#dialect = dialect;
        return answer;
      } catch (error) {
        const said = refusedText(error);
        const next = said === null ? null : simpler(dialect, request, said);
        if (!next) throw error;
        dialect = next;
      }
    }
  }

  async #ask(request: ChatRequest, model: string, dialect: Dialect, send: Send): Promise<Answer> {
    const sent = await send('/chat/completions', requestBody(request, model, dialect));
    const answer = await readAnswer(sent, this.options.answerBytesMax, this.#connection.context);
    return sent.headers['x-etude-scripted'] === undefined ? answer : { ...answer, scripted: true };
  }

  #response(request: ChatRequest, model: string, answer: Answer): ChatResponse {
    const { priceInputUsdPerMtok, priceOutputUsdPerMtok } = this.options;
    const inputTokens = answer.inputTokens ?? approximateTokens(requestChars(request));
    const outputTokens = answer.outputTokens ?? approximateTokens(answer.text.length);
    const costUsd = (inputTokens * priceInputUsdPerMtok + outputTokens * priceOutputUsdPerMtok) / 1e6;
    return { ...answer, model: answer.model ?? model, inputTokens, outputTokens, costUsd };
  }
}

/** The server's message for a request refused with 400 or 422; null for every other error. */
function refusedText(error: unknown): string | null {
  const { status, said = '' } = errorDetails(error).metadata ?? {};
  return status === '400' || status === '422' ? said : null;
}

/** The parts of the protocol to use with a server. It starts with all of them and drops those that the server refuses. */
export interface Dialect {
  readonly stream: boolean;
  readonly streamOptions: boolean;
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens';
  readonly temperature: boolean;
}

export const FULL_DIALECT: Dialect = { stream: true, streamOptions: true, tokenLimit: 'max_tokens', temperature: true };

export function requestBody(request: ChatRequest, model: string, dialect: Dialect): Record<string, unknown> {
  return {
    model,
    messages: request.messages.map(({ role, content }) => ({ role, content })),
    ...(request.temperature !== undefined && dialect.temperature ? { temperature: request.temperature } : {}),
    ...(request.outputTokensMax === undefined ? {} : { [dialect.tokenLimit]: request.outputTokensMax }),
    ...(dialect.stream
      ? { stream: true, ...(dialect.streamOptions ? { stream_options: { include_usage: true } } : {}) }
      : { stream: false }),
  };
}

const UNKNOWN_PART =
  /stream|unknown|unrecogni[sz]ed|unsupported|not supported|not permitted|unexpected|additional|extra (field|input|param)/i;

/**
 * The next simpler dialect after a refusal with this message; null where the refusal has another reason.
 * Why: servers accept different parts of the protocol, and only a refusal tells which.
 */
export function simpler(dialect: Dialect, request: ChatRequest, message: string): Dialect | null {
  if (request.outputTokensMax !== undefined && dialect.tokenLimit === 'max_tokens' && message.includes('max_completion_tokens')) {
    return { ...dialect, tokenLimit: 'max_completion_tokens' };
  }
  if (request.temperature !== undefined && dialect.temperature && /temperature/i.test(message)) return { ...dialect, temperature: false };
  if (message !== '' && !UNKNOWN_PART.test(message)) return null;
  if (dialect.stream && dialect.streamOptions) return { ...dialect, streamOptions: false };
  if (dialect.stream) return { ...dialect, stream: false };
  return null;
}
