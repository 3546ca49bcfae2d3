import { errorDetails } from '@etude/contracts/errors';
import type { ChatModel, ChatRequest, ChatResponse } from '@etude/domain/ports/model';
import { AnswerReader } from './answer-reader.js';
import type { Answer } from './chat-answer.js';
import type { Dialect } from './chat-request.js';
import { FULL_DIALECT, requestBody, simpler } from './chat-request.js';
import { firstModel } from './model-list.js';
import type { ConnectionOptions, Exchange } from './openai-connection.js';
import { OpenAiConnection } from './openai-connection.js';
import { approximateTokens, callChars, requestChars } from './token-count.js';

export interface OpenAiChatOptions extends ConnectionOptions {
  /** Absent: the first that the server lists, else `default`. */
  readonly model?: string;
  /** US dollars for a million tokens. Default 0. */
  readonly priceInputUsdPerMtok?: number;
  readonly priceOutputUsdPerMtok?: number;
  /** Text of an answer; a longer one is cut there with finish reason `length`. Default 1 MiB. */
  readonly answerBytesMax?: number;
}

/**
 * A chat model behind any server that speaks OpenAI's chat completions, in whatever part of the protocol it knows.
 *
 * Tokens are the server's count, or about characters / 4 where it gives none. Retries: `retry.ts`.
 */
export class OpenAiChatModel implements ChatModel {
  readonly #connection: OpenAiConnection;
  readonly #options: OpenAiChatOptions;
  #dialect: Dialect = FULL_DIALECT;
  #model: string | undefined;

  constructor(options: OpenAiChatOptions) {
    this.#options = options;
    this.#model = options.model;
    this.#connection = new OpenAiConnection(options);
  }

  async chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
    const model = this.#model ?? (await firstModel(this.#connection, signal));
    const answer = await this.#connection.call((exchange) => this.#negotiate(request, model, exchange), signal);
    this.#model = model;
    return this.#response(request, model, answer);
  }

  /** Closes idle connections. */
  close(): void {
    this.#connection.close();
  }

  /** Asks again in a simpler dialect when the server refuses a part of the protocol, and keeps what worked. */
  async #negotiate(request: ChatRequest, model: string, exchange: Exchange): Promise<Answer> {
    let dialect = this.#dialect;
    for (;;) {
      try {
        const answer = await this.#ask(request, model, dialect, exchange);
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

  async #ask(request: ChatRequest, model: string, dialect: Dialect, { client, signal, read }: Exchange): Promise<Answer> {
    const response = await client.chat.completions.create(requestBody(request, model, dialect), { signal }).asResponse();
    const reader = new AnswerReader(this.#options.answerBytesMax ?? 1024 * 1024, this.#connection.context);
    await read(response, (text) => reader.push(text));
    const answer = reader.end();
    return response.headers.get('x-etude-scripted') === null ? answer : { ...answer, scripted: true };
  }

  #response(request: ChatRequest, model: string, answer: Answer): ChatResponse {
    const { priceInputUsdPerMtok = 0, priceOutputUsdPerMtok = 0 } = this.#options;
    const inputTokens = answer.inputTokens ?? approximateTokens(requestChars(request));
    const outputTokens = answer.outputTokens ?? approximateTokens(answer.text.length + callChars(answer.toolCalls));
    const costUsd = (inputTokens * priceInputUsdPerMtok + outputTokens * priceOutputUsdPerMtok) / 1e6;
    return { ...answer, model: answer.model ?? model, inputTokens, outputTokens, costUsd };
  }
}

/** What a server said when it refused a request with 400 or 422; null for every other error. */
function refusedText(error: unknown): string | null {
  const { status, message } = (error ?? {}) as { status?: unknown; message?: unknown };
  const number = Number(status ?? errorDetails(error).metadata?.['status']);
  return number === 400 || number === 422 ? String(message) : null;
}
