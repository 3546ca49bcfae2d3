import { errorDetails, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import type { ChatModel, ChatRequest, ChatResponse } from '@etude/domain/ports/model';
import { createParser } from 'eventsource-parser';
import { approximateTokens } from '@etude/domain/model-answer';
import { type Answer, AnswerAssembler, requestText } from './chat-answer.js';
import { type ConnectionOptions, OpenAiConnection, type Send } from './openai-connection.js';
import { faultError, quoted, type ServerAnswer, type ServerContext, serverName } from './server-answer.js';
import { calledInText, messageOnWire, messagesAsText, toolOnWire } from './tools-on-wire.js';

export interface OpenAiChatOptions extends ConnectionOptions {
  /** Absent means the first model that the server lists, or `default` if it lists none. */
  readonly model?: string;
  /** In US dollars per million tokens, like the next price. */
  readonly priceInputUsdPerMtok: number;
  readonly priceOutputUsdPerMtok: number;
  /** The most bytes of an answer's text. A longer text is cut, and its finish reason is `length`. */
  readonly answerBytesMax: number;
}

/**
 * A chat model behind any server that speaks OpenAI's chat completions, or a part of that protocol.
 *
 * Tokens are counted by the server. If it gives no count, they are estimated as a quarter of the characters. `retry.ts` does the retries.
 */
export class OpenAiChatModel implements ChatModel {
  readonly #connection: OpenAiConnection;
  #refused: ReadonlySet<Part> = new Set();
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

  /** If the server refuses a part of the protocol, asks again without it. Remembers the refused parts when the server has answered. */
  async #negotiate(request: ChatRequest, model: string, send: Send): Promise<Answer> {
    let [refused, lasting] = [this.#refused, this.#refused];
    for (;;) {
      const body = requestBody(request, model, refused);
      try {
        const answer = await this.#ask(request, body, send);
        this.#refused = lasting;
        return answer;
      } catch (error) {
        const said = refusedText(error);
        const part = said === null ? undefined : refusedPart(body, said);
        if (part === undefined) throw error;
        refused = new Set([...refused, part]);
        // If only the schema of a tool was refused, the server may accept the tools of other agents.
        if (part !== 'tools' || !/schema/i.test(said ?? '')) lasting = new Set([...lasting, part]);
      }
    }
  }

  async #ask({ tools = [], onText }: ChatRequest, body: Body, send: Send): Promise<Answer> {
    const sent = await send('/chat/completions', body);
    const read = await readAnswer(sent, this.options.answerBytesMax, this.#connection.context, onText);
    const answer = tools.length > 0 && body.tools === undefined ? calledInText(read) : read;
    return sent.headers['x-etude-scripted'] === undefined ? answer : { ...answer, scripted: true };
  }

  #response(request: ChatRequest, model: string, answer: Answer): ChatResponse {
    const { priceInputUsdPerMtok, priceOutputUsdPerMtok } = this.options;
    const inputTokens = answer.inputTokens ?? approximateTokens(requestText(request));
    const outputTokens = answer.outputTokens ?? approximateTokens(answer.text);
    const costUsd = (inputTokens * priceInputUsdPerMtok + outputTokens * priceOutputUsdPerMtok) / 1e6;
    return { ...answer, model: answer.model ?? model, inputTokens, outputTokens, costUsd };
  }
}

/** The server's message if it refused a request with 400 or 422. null for every other error. */
function refusedText(error: unknown): string | null {
  const { status, said = '' } = errorDetails(error).metadata ?? {};
  return status === '400' || status === '422' ? said : null;
}

/** Parts of the protocol that servers may refuse. A refused `max_tokens` is sent under its newer name, and refused `tools` as text. */
type Part = 'max_tokens' | 'temperature' | 'tools' | 'stream_options' | 'stream';
type Body = ReturnType<typeof requestBody>;

function requestBody(request: ChatRequest, model: string, refused: ReadonlySet<Part>) {
  const { tools = [], messages, temperature, outputTokensMax: limit } = request;
  const [asText, stream] = [tools.length > 0 && refused.has('tools'), !refused.has('stream')];
  return {
    model,
    messages: asText ? messagesAsText(messages, tools) : messages.map(messageOnWire),
    tools: tools.length > 0 && !asText ? tools.map(toolOnWire) : undefined,
    temperature: refused.has('temperature') ? undefined : temperature,
    [refused.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens']: limit,
    stream,
    stream_options: stream && !refused.has('stream_options') ? { include_usage: true } : undefined,
  };
}

const UNKNOWN_PART =
  /stream|unknown|unrecogni[sz]ed|unsupported|not supported|not permitted|unexpected|additional|extra (field|input|param)/i;

/** The part of the request that the server refused with this message, or undefined. Only a refusal shows which parts a server accepts. */
function refusedPart(body: Body, message: string): Part | undefined {
  const has = (part: Part) => body[part] !== undefined && body[part] !== false;
  if (has('max_tokens') && message.includes('max_completion_tokens')) return 'max_tokens';
  if (has('temperature') && /temperature/i.test(message)) return 'temperature';
  if (has('tools') && /\btools?\b|\bfunctions?\b|tool_c/i.test(message)) return 'tools';
  if (message !== '' && !UNKNOWN_PART.test(message)) return undefined;
  return (['stream_options', 'stream', 'tools'] as const).find(has);
}

/** The most characters of a body that an error message quotes if the body is not a stream of events. */
const START_CHARS = 1_000;

/**
 * Reads the body of a chat completion: server-sent events or one JSON document.
 *
 * The first character shows which of the two came, because servers may ignore `stream` and send a wrong content type.
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
    },
  });
  let [start, document] = ['', ''];
  for await (const text of body.text()) {
    start = (start + text).trimStart().slice(0, START_CHARS);
    if (start.startsWith('{')) document += text;
    else parser.feed(text);
    if (assembler.full || assembler.fault) break;
    if (assembler.finishReason !== null || events.done) body.finishSoon();
  }
  const value = parsedJson(document.trim());
  if (document) assembler.accept(value);
  // Ends the last event, in case the server left out the blank line after it.
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
  new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} stopped before its answer was complete.`);

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
