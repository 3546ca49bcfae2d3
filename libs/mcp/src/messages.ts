import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { parseExactJson } from '@etude/contracts/json';
import { parseJSONRPCMessage, ProtocolErrorCode, STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/server';

export interface MessageRefusal {
  readonly jsonrpc: '2.0';
  /** Id of the refused request; null if it can't be determined. */
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string };
}

/** `refusal` is null if the wrong message is an answer: answers get no answer. */
export type ReadMessage = { readonly message: unknown } | { readonly refusal: MessageRefusal | null; readonly why: string };

export const NO_BATCHES = 'Send one message at a time: batches left the protocol with 2025-06-18.';

/** Parses one message. Refuses it if parsing would change a number or text, so that no altered request runs. */
export function readMessage(text: string): ReadMessage {
  try {
    return { message: parseExactJson(text) };
  } catch (error) {
    const why = (error as Error).message;
    if (error instanceof SyntaxError) return refused(null, ProtocolErrorCode.ParseError, `The message is not JSON: ${why}`);
    return refused(JSON.parse(text), ProtocolErrorCode.InvalidParams, why);
  }
}

/** Parses one message like `readMessage`, and also refuses JSON that isn't a JSON-RPC message. */
export function readRpcMessage(text: string): ReadMessage {
  const read = readMessage(text);
  if (!('message' in read)) return read;
  try {
    parseJSONRPCMessage(read.message);
    return read;
  } catch {
    const what = Array.isArray(read.message)
      ? NO_BATCHES
      : 'This is no message of JSON-RPC 2.0: a request has "jsonrpc": "2.0", an "id" that is a text or a whole number, a "method", and "params" that are an object.';
    return refused(read.message, ProtocolErrorCode.InvalidRequest, what);
  }
}

function refused(message: unknown, code: number, why: string): ReadMessage {
  const { id, ...rest } = (typeof message === 'object' && message !== null ? message : {}) as Readonly<Record<string, unknown>>;
  if (('result' in rest || 'error' in rest) && !('method' in rest)) return { refusal: null, why };
  const isId = typeof id === 'string' || Number.isSafeInteger(id);
  return { refusal: { jsonrpc: '2.0', id: isId ? (id as string | number) : null, error: { code, message: why } }, why };
}

/** Passes on the lines that are JSON-RPC messages, and reports all others. */
export class MessageLines extends Transform {
  readonly #decoder = new StringDecoder('utf8');
  #parts: string[] = [];
  #length = 0;

  /** @param onRefused receives the answer to send; `refusal` null: send none */
  constructor(private readonly onRefused: (refusal: MessageRefusal | null, why: string) => void) {
    super({ decodeStrings: true });
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const [first = '', ...more] = this.#decoder.write(chunk).split('\n');
    this.#keep(first);
    for (const next of more) {
      this.#read(this.#taken());
      this.#keep(next);
    }
    // The reader behind this stream rejects a line of this length and closes the connection.
    if (this.#length > STDIO_DEFAULT_MAX_BUFFER_SIZE) this.push(this.#taken());
    done();
  }

  #keep(part: string): void {
    this.#parts.push(part);
    this.#length += part.length;
  }

  #taken(): string {
    this.#length = 0;
    return this.#parts.splice(0).join('');
  }

  #read(line: string): void {
    if (line.trim() === '') return;
    const read = readRpcMessage(line);
    if ('message' in read) this.push(`${line}\n`);
    else this.onRefused(read.refusal, read.why);
  }
}
