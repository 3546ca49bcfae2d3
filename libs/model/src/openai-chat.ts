import { errorDetails, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import type { ChatModel, ChatRequest, ChatResponse } from '@etude/domain/ports/model';
import { createParser } from 'eventsource-parser';
import { type Answer, AnswerAssembler, approximateTokens, requestChars } from './chat-answer.js';
import { type ConnectionOptions, OpenAiConnection, type Send } from './openai-connection.js';
import { faultError, quoted, type ServerAnswer, type ServerContext, serverName } from './server-answer.js';
import { calledInText, messageOnWire, messagesAsText, toolOnWire } from './tools-on-wire.js';

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
    for (let dialect = this.#dialect; ;) {
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
    const read = await readAnswer(sent, this.options.answerBytesMax, this.#connection.context, request.onText);
    const answer = usesText(request, dialect) ? calledInText(read) : read;
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
interface Dialect {
  readonly stream: boolean;
  readonly streamOptions: boolean;
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens';
  readonly temperature: boolean;
  /** Whether the server is asked for function calls. Otherwise tools are described as text. */
  readonly tools: boolean;
}

const FULL_DIALECT: Dialect = { stream: true, streamOptions: true, tokenLimit: 'max_tokens', temperature: true, tools: true };

const usesText = ({ tools = [] }: ChatRequest, dialect: Dialect) => tools.length > 0 && !dialect.tools;

export function requestBody(request: ChatRequest, model: string, dialect: Dialect): Record<string, unknown> {
  const { tools = [] } = request;
  const messages = usesText(request, dialect) ? messagesAsText(request.messages, tools) : request.messages.map(messageOnWire);
  return {
    model,
    messages,
    ...(tools.length > 0 && dialect.tools ? { tools: tools.map(toolOnWire) } : {}),
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
function simpler(dialect: Dialect, request: ChatRequest, message: string): Dialect | null {
  if (request.outputTokensMax !== undefined && dialect.tokenLimit === 'max_tokens' && message.includes('max_completion_tokens')) {
    return { ...dialect, tokenLimit: 'max_completion_tokens' };
  }
  if (request.temperature !== undefined && dialect.temperature && /temperature/i.test(message)) return { ...dialect, temperature: false };
  if ((request.tools ?? []).length > 0 && dialect.tools && /\btools?\b|\bfunctions?\b|tool_c/i.test(message))
    return { ...dialect, tools: false };
  if (message !== '' && !UNKNOWN_PART.test(message)) return null;
  if (dialect.stream && dialect.streamOptions) return { ...dialect, streamOptions: false };
  if (dialect.stream) return { ...dialect, stream: false };
  if ((request.tools ?? []).length > 0 && dialect.tools) return { ...dialect, tools: false };
  return null;
}

/** How many times longer than its text a completion's body may be, because of escapes and the server's own fields. */
const BODY_OVER_TEXT = 16;
/** How much of a body is kept for the error message, in case it is no stream of events. */
const START_CHARS = 1_000;

/**
 * Reads the body of a chat completion: server-sent events or one JSON document.
 *
 * The first character tells which of them it is, because servers may ignore `stream` and send a wrong content type.
 * @throws EtudeError MODEL_ANSWER_EMPTY, MODEL_ANSWER_TRUNCATED, MODEL_REFUSED, or what the server's own error says
 */
async function readAnswer(
  body: ServerAnswer,
  textBytesMax: number,
  context: ServerContext,
  onText?: ChatRequest['onText'],
): Promise<Answer> {
  const assembler = new AnswerAssembler(textBytesMax, onText);
  const events = { data: false, done: false };
  const parser = createParser({
    onEvent: ({ data }) => {
      events.data = true;
      if (data.trim() === '[DONE]') events.done = true;
      if (!events.done) assembler.accept(parsedJson(data));
      unread = 0;
    },
  });
  let [start, document, unread] = ['', '', 0];
  for await (const text of body.text()) {
    start = (start + text).trimStart().slice(0, START_CHARS);
    unread += text.length;
    if (start.startsWith('{')) document += text;
    else parser.feed(text);
    if (assembler.full || assembler.fault || unread > textBytesMax * BODY_OVER_TEXT) break;
    if (assembler.finishReason !== null || events.done) body.finishSoon();
  }
  const value = parsedJson(document.trim());
  if (document) assembler.accept(value);
  // Ends the last event, in case the server left out the blank line behind it.
  else parser.feed('\n\n');
  const { fault, full, empty, finishReason } = assembler;
  if (fault) throw faultError(fault, context);
  if (full && !empty) return assembler.answer();
  if (!document && start && !events.data) throw noCompletion(start, context);
  if (start && value === undefined && !events.done && finishReason === null) throw truncated(context);
  if (empty) throw emptyAnswer(finishReason, document, context);
  return assembler.answer();
}

const truncated = (context: ServerContext) =>
  new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} cut its answer off before the end.`);

function emptyAnswer(finishReason: string | null, document: string, context: ServerContext): EtudeError {
  const body = document === '' ? '' : ` It sent: ${quoted(document, context)}`;
  const message = `${serverName(context)} answered without any text${finishReason ? ` (finish reason ${finishReason})` : ''}.${body}`;
  return new EtudeError('MODEL_ANSWER_EMPTY', message);
}

function noCompletion(text: string, context: ServerContext): EtudeError {
  return new EtudeError(
    'MODEL_REFUSED',
    `${serverName(context)} answered with something other than a chat completion: ${quoted(text, context)} ` +
      `Check ${context.settings.baseUrl}; it usually ends with /v1.`,
  );
}
