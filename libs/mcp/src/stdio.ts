import { addAbortSignal, Readable, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { parseExactJson } from '@etude/contracts/json';
import { ProtocolErrorCode, STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { McpCaller } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';

export interface StdioOptions extends EtudeServerOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Ends the server, like the end of its input. */
  readonly signal: AbortSignal;
  readonly onError: (error: Error) => void;
}

/**
 * Splits the input into lines, at line feeds only: `node:readline` also splits at U+2028, which JSON strings may contain. A message that
 * parsing would change, for example by a number beyond 2^53, is refused, so that no altered request runs.
 */
async function* exactLines({ stdin, stdout, onError }: Pick<StdioOptions, 'stdin' | 'stdout' | 'onError'>): AsyncGenerator<Buffer> {
  let rest = '';
  for await (const text of stdin.setEncoding('utf8') as AsyncIterable<string>) {
    const [first = '', ...more] = text.split('\n');
    rest += first;
    for (const next of more) {
      const refusal = refusalOf(rest);
      if (refusal === null) yield Buffer.from(`${rest}\n`);
      else {
        onError(new Error(refusal.error.message));
        stdout.write(`${JSON.stringify(refusal)}\n`);
      }
      rest = next;
    }
    if (rest.length > STDIO_DEFAULT_MAX_BUFFER_SIZE)
      throw new Error(`a line of the input has more than ${STDIO_DEFAULT_MAX_BUFFER_SIZE} characters`);
  }
}

/** The answer to a message that parsing would change. null for every other line, even if the line is no JSON. */
function refusalOf(line: string) {
  try {
    parseExactJson(line);
    return null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    const { id } = JSON.parse(line) as { readonly id?: unknown };
    const answered = typeof id === 'string' || Number.isSafeInteger(id) ? id : null;
    return { jsonrpc: '2.0', id: answered, error: { code: ProtocolErrorCode.InvalidParams, message: (error as Error).message } };
  }
}

/** Serves one client until its input ends. Only protocol messages go to `stdout`. An invalid line is skipped. */
export async function serveOverStdio(calls: GatewayCalls, caller: McpCaller, options: StdioOptions): Promise<void> {
  const { stdin, stdout, signal, onError } = options;
  const lines = addAbortSignal(signal, Readable.from(exactLines(options)));
  const transport = new StdioServerTransport(lines, stdout);
  const handle = serveStdio(() => etudeServer(calls, caller, options), { transport, onerror: onError });
  await finished(lines).catch(() => undefined);
  stdin.destroy();
  await handle.close();
}
