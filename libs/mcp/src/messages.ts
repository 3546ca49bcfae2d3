import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { parseExactJson } from '@etude/contracts/json';
import { parseJSONRPCMessage, ProtocolErrorCode, STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/server';

/** An error of JSON-RPC. */
export interface MessageRefusal {
  readonly jsonrpc: '2.0';
  /** Of the request that is refused; null where it can't be told. */
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string };
}

/** `refusal` is null for what is wrong and no request: nobody waits for an answer to an answer. */
export type ReadMessage = { readonly message: unknown } | { readonly refusal: MessageRefusal | null; readonly why: string };

export const NO_BATCHES = 'Send one message at a time: batches left the protocol with 2025-06-18.';

/** One message out of its text. A request whose numbers or texts would change on their way is refused, and not what was changed run. */
export function readMessage(text: string): ReadMessage {
  try {
    return { message: parseExactJson(text) };
  } catch (error) {
    const why = (error as Error).message;
    if (error instanceof SyntaxError) return refused(null, ProtocolErrorCode.ParseError, `The message is not JSON: ${why}`);
    return refused(JSON.parse(text), ProtocolErrorCode.InvalidParams, why);
  }
}

/** As `readMessage`; what is JSON and no message of JSON-RPC is refused as well. */
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

/** Passes on the lines that are messages of JSON-RPC, and tells of every other one. */
export class MessageLines extends Transform {
  readonly #decoder = new StringDecoder('utf8');
  #parts: string[] = [];
  #length = 0;

  /** @param onRefused `refusal` is what to answer; null for nothing */
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
    // Whoever reads on gives up on a line of this length, and with it on the connection.
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
