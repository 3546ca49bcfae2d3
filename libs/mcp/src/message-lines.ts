import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/server';
import { type MessageRefusal, readRpcMessage } from './read-message.js';

const BLANK = /^\s*$/;

/** Emitted for each message, before it is passed on. */
export const MESSAGE = 'message';

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
      this.#take();
      this.#keep(next);
    }
    // Whoever reads on gives up on a line of this length, and with it on the connection.
    if (this.#length > STDIO_DEFAULT_MAX_BUFFER_SIZE) this.push(this.#rest());
    done();
  }

  #keep(part: string): void {
    this.#parts.push(part);
    this.#length += part.length;
  }

  #rest(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return text;
  }

  #take(): void {
    const line = this.#rest();
    if (BLANK.test(line)) return;
    const read = readRpcMessage(line);
    if ('message' in read) {
      this.emit(MESSAGE);
      this.push(`${line}\n`);
    } else this.onRefused(read.refusal, read.why);
  }
}
