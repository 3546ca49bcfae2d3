import type { Readable, Writable } from 'node:stream';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { McpCaller } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';

export interface StdioOptions extends EtudeServerOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Ends the server as the end of its input does. */
  readonly signal: AbortSignal;
  /** Hears of what is wrong with the connection. */
  readonly onError: (error: Error) => void;
}

/** Serves one client until its input ends. Nothing but messages of the protocol goes to `stdout`. */
export async function serveOverStdio(calls: GatewayCalls, caller: McpCaller, options: StdioOptions): Promise<void> {
  const { stdin, stdout, signal, onError } = options;
  const ended = Promise.withResolvers<void>();
  for (const event of ['end', 'close', 'error']) stdin.once(event, () => ended.resolve());
  signal.addEventListener('abort', () => ended.resolve(), { once: true });
  const transport = new StdioServerTransport(stdin, stdout);
  const handle = serveStdio(() => etudeServer(calls, caller, options), { transport, onerror: onError });
  if (signal.aborted) ended.resolve();
  await ended.promise;
  await handle.close();
}
