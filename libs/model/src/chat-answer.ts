import type { ChatRequest, ChatResponse } from '@etude/domain/ports/model';
import { type CallParts, joinedCalls } from './tools-on-wire.js';
import { StringDecoder } from 'node:string_decoder';
import { faultIn, type ServerFault } from './server-answer.js';

type Json = Record<string, unknown>;

/** The received part of a model's answer. Counts of tokens are null if the server gave none. */
export interface Answer extends Pick<ChatResponse, 'text' | 'toolCalls' | 'finishReason'> {
  readonly model: string | null;
  readonly scripted: boolean;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Builds an answer from the chunks of a stream or from one completion. Both have the same parts. Fields may be absent or have other names. */
export class AnswerAssembler {
  /** The server's reason for the end. After it, the answer is complete. */
  finishReason: string | null = null;
  /** Whether the text reached its maximum. The caller then stops reading. */
  full = false;
  fault: ServerFault | null = null;
  #room: number;
  #text = '';
  readonly #calls: CallParts = new Map();
  #model: string | null = null;
  #scripted = false;
  #usage: Json = {};

  constructor(
    textBytesMax: number,
    private readonly onText?: ChatRequest['onText'],
  ) {
    this.#room = textBytesMax;
  }

  accept(chunk: unknown): void {
    if (!isObject(chunk)) return;
    if (chunk['error'] !== undefined && chunk['error'] !== null) this.fault ??= faultIn(chunk['error']);
    if (typeof chunk['model'] === 'string' && chunk['model'] !== '') this.#model = chunk['model'];
    if (chunk['system_fingerprint'] === 'scripted') this.#scripted = true;
    if (isObject(chunk['usage'])) this.#usage = { ...this.#usage, ...chunk['usage'] };
    const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined;
    if (isObject(choice)) this.#acceptChoice(choice);
  }

  get empty(): boolean {
    return this.#text.trim() === '' && this.#calls.size === 0;
  }

  answer(): Answer {
    const isCut = this.full || this.finishReason === 'length' || this.finishReason === 'max_tokens';
    return {
      text: this.#text,
      ...(this.#calls.size === 0 ? {} : { toolCalls: joinedCalls(this.#calls) }),
      finishReason: isCut ? 'length' : 'stop',
      model: this.#model,
      scripted: this.#scripted,
      inputTokens: count(this.#usage, 'prompt_tokens', 'input_tokens'),
      outputTokens: count(this.#usage, 'completion_tokens', 'output_tokens'),
    };
  }

  #acceptChoice(choice: Json): void {
    const message = [choice['delta'], choice['message']].find(isObject) ?? {};
    const text = this.#fitting(textOf(message['content']) + textOf(message['refusal']));
    this.#text += text;
    if (text !== '') this.onText?.(text);
    if (Array.isArray(message['tool_calls'])) this.#acceptCalls(message['tool_calls']);
    if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '') this.finishReason = choice['finish_reason'];
  }

  /** Adds pieces of tool calls. A stream may send a call's name and arguments in several pieces with the same index. */
  #acceptCalls(calls: readonly unknown[]): void {
    for (const [at, call] of calls.filter(isObject).entries()) {
      const { index = at, id, function: given } = call;
      const part = this.#calls.get(Number(index)) ?? { id: '', name: '', arguments: '' };
      const { name, arguments: text } = isObject(given) ? given : {};
      this.#calls.set(Number(index), {
        id: part.id || (typeof id === 'string' ? id : ''),
        name: part.name + this.#fitting(typeof name === 'string' ? name : ''),
        arguments: part.arguments + this.#fitting(typeof text === 'string' ? text : isObject(text) ? JSON.stringify(text) : ''),
      });
    }
  }

  /** Cuts the text to the room that is left, between characters. */
  #fitting(text: string): string {
    const bytes = Buffer.byteLength(text);
    if (bytes <= this.#room) {
      this.#room -= bytes;
      return text;
    }
    this.full = true;
    const part = new StringDecoder('utf8').write(Buffer.from(text).subarray(0, this.#room));
    this.#room = 0;
    return part;
  }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOf).join('');
  return isObject(content) && typeof content['text'] === 'string' ? content['text'] : '';
}

/** The count, or null if it isn't positive. Servers that don't count send zero. */
function count(usage: Json, ...names: string[]): number | null {
  const value = names.map((name) => Number(usage[name])).find((number) => Number.isFinite(number) && number > 0);
  return value === undefined ? null : Math.round(value);
}

export function requestText({ messages, tools = [] }: ChatRequest): string {
  const texts = messages.flatMap(({ content, toolCalls = [] }) => [content, ...toolCalls.map((call) => call.arguments)]);
  return [...texts, ...tools.map((tool) => JSON.stringify(tool))].join('');
}
