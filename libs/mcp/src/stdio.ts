import type { Readable, Writable } from 'node:stream';
import { STDIO_DEFAULT_MAX_BUFFER_SIZE, type Transport } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { McpCaller } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';
import { readMessage } from './messages.js';

export interface StdioOptions extends EtudeServerOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Ends the server, like the end of its input. */
  readonly signal: AbortSignal;
  /** Called for problems of the connection. */
  readonly onError: (error: Error) => void;
}

/** One message per line. Lines end at a line feed only: `node:readline` also splits at U+2028, which JSON strings may contain. */
class LineTransport implements Transport {
  onclose?: () => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  readonly #ended = Promise.withResolvers<void>();
  /** Resolves once the transport is closed by either side. */
  readonly ended = this.#ended.promise;

  constructor(private readonly options: Pick<StdioOptions, 'stdin' | 'stdout' | 'onError'>) {}

  async start(): Promise<void> {
    const { stdin, stdout } = this.options;
    let rest = '';
    stdin.setEncoding('utf8').on('data', (text: string) => {
      const [first = '', ...more] = text.split('\n');
      rest += first;
      for (const next of more) {
        this.#read(rest);
        rest = next;
      }
      if (rest.length <= STDIO_DEFAULT_MAX_BUFFER_SIZE) return;
      this.options.onError(new Error(`a message is one line of at most ${STDIO_DEFAULT_MAX_BUFFER_SIZE} characters; the connection ends`));
      void this.close();
    });
    for (const event of ['end', 'close', 'error']) stdin.once(event, () => void this.close());
    stdout.once('error', () => void this.close()); // the client closed its end first
  }

  async send(message: object): Promise<void> {
    if (this.options.stdout.writable) this.options.stdout.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.options.stdin.destroy();
    this.onclose?.();
    this.#ended.resolve();
  }

  #read(line: string): void {
    if (line.trim() === '') return;
    const read = readMessage(line);
    if ('message' in read) return this.onmessage?.(read.message);
    this.options.onError(new Error(read.why));
    if (read.refusal !== null) void this.send(read.refusal);
  }
}

/**
 * Serves one client until its input ends. Only protocol messages go to `stdout`. An invalid line gets an error answer, and
 * reading continues.
 */
export async function serveOverStdio(calls: GatewayCalls, caller: McpCaller, options: StdioOptions): Promise<void> {
  const { signal, onError } = options;
  const transport = new LineTransport(options);
  const handle = serveStdio(() => etudeServer(calls, caller, options), { transport, onerror: onError });
  signal.addEventListener('abort', () => void transport.close(), { once: true });
  if (signal.aborted) await transport.close();
  await transport.ended;
  await handle.close();
}
