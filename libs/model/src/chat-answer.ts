import type { ChatRequest, ChatResponse, ToolCall } from '@etude/domain/ports/model';
import { StringDecoder } from 'node:string_decoder';
import type { ServerFault } from './server-errors.js';
import { faultIn } from './server-errors.js';

type Json = Record<string, unknown>;
interface PartialCall {
  id: string;
  name: string;
  arguments: string;
}

/** One answer of the model, as far as it was received. Counts of tokens are null where the server gave none. */
export interface Answer extends Pick<ChatResponse, 'text' | 'toolCalls' | 'finishReason'> {
  readonly model: string | null;
  readonly scripted: boolean;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/**
 * Puts an answer together from the chunks of a stream or from one whole completion. Both have the same parts, under `delta` or
 * `message`. It accepts what servers leave out or write differently.
 */
export class AnswerAssembler {
  /** Whether the server named a finish reason: nothing more is needed. */
  finished = false;
  /** Whether the text reached its maximum: stop reading. */
  full = false;
  fault: ServerFault | null = null;
  #room: number;
  #text = '';
  #finishReason: string | null = null;
  #model: string | null = null;
  #scripted = false;
  #usage: Json = {};
  readonly #calls: PartialCall[] = [];
  readonly #callOf = new Map<number, PartialCall>();

  constructor(textBytesMax: number) {
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

  /** Whether there is neither text nor a tool call. */
  get empty(): boolean {
    return this.#text.trim() === '' && this.#calls.length === 0;
  }

  get finishReason(): string | null {
    return this.#finishReason;
  }

  answer(): Answer {
    const toolCalls = this.#calls.filter((call) => !this.full || isJson(call.arguments)).map(named);
    return {
      text: this.#text,
      toolCalls,
      finishReason: this.#cut() ? 'length' : toolCalls.length > 0 ? 'tool_calls' : 'stop',
      model: this.#model,
      scripted: this.#scripted,
      inputTokens: count(this.#usage, 'prompt_tokens', 'input_tokens'),
      outputTokens: count(this.#usage, 'completion_tokens', 'output_tokens'),
    };
  }

  #cut(): boolean {
    return this.full || this.#finishReason === 'length' || this.#finishReason === 'max_tokens';
  }

  #acceptChoice(choice: Json): void {
    const message = [choice['delta'], choice['message']].find(isObject) ?? {};
    this.#text += this.#fitting(textOf(message['content']) + textOf(message['refusal']));
    if (Array.isArray(message['tool_calls'])) message['tool_calls'].forEach((call) => this.#addCall(call));
    if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '') {
      this.#finishReason = choice['finish_reason'];
      this.finished = true;
    }
  }

  #addCall(call: unknown): void {
    if (!isObject(call)) return;
    const made = isObject(call['function']) ? call['function'] : call;
    const id = typeof call['id'] === 'string' ? call['id'] : '';
    const entry = this.#callFor(call['index'], id, typeof made['name'] === 'string');
    if (id) entry.id = id;
    if (typeof made['name'] === 'string' && made['name'] !== entry.name) entry.name += made['name'];
    const given = made['arguments'];
    entry.arguments += this.#fitting(
      typeof given === 'string' ? given : given === undefined || given === null ? '' : JSON.stringify(given),
    );
  }

  /** The call to which a delta belongs. Deltas of one call share an index, but some servers omit it or give all calls the same one. */
  #callFor(index: unknown, id: string, isNamed: boolean): PartialCall {
    const known =
      typeof index === 'number'
        ? this.#callOf.get(index)
        : id
          ? this.#calls.find((call) => call.id === id)
          : isNamed
            ? undefined
            : this.#calls.at(-1);
    if (known && (id === '' || known.id === '' || known.id === id)) return known;
    const made = { id, name: '', arguments: '' };
    this.#calls.push(made);
    if (typeof index === 'number') this.#callOf.set(index, made);
    return made;
  }

  /** The beginning of the text, up to the room that is left. It is cut between characters. */
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

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The text of a message's content: a string, a text part, or a list of these. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOf).join('');
  return isObject(content) && typeof content['text'] === 'string' ? content['text'] : '';
}

const named = (call: PartialCall, i: number): ToolCall => ({
  id: call.id || `call_${i + 1}`,
  name: call.name,
  arguments: call.arguments || '{}',
});

/** A positive count, or null. Servers that don't count write zero. */
function count(usage: Json, ...names: string[]): number | null {
  const value = names.map((name) => Number(usage[name])).find((number) => Number.isFinite(number) && number > 0);
  return value === undefined ? null : Math.round(value);
}

/** Estimates the tokens of a text that nobody counted: one for four characters, as in English prose. */
export const approximateTokens = (chars: number) => Math.ceil(chars / 4);

export function requestChars({ messages, tools }: ChatRequest): number {
  const said = messages.reduce((sum, message) => sum + message.content.length + callChars(message.toolCalls ?? []), 0);
  return said + (tools?.length ? JSON.stringify(tools).length : 0);
}

export function callChars(calls: ReadonlyArray<{ readonly name: string; readonly arguments: string }>): number {
  return calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
}
