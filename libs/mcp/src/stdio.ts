import type { Readable, Writable } from 'node:stream';
import type { JSONRPCErrorResponse } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { McpCaller } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';
import { MessageLines } from './messages.js';

export interface StdioOptions extends EtudeServerOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Ends the server, like the end of its input. */
  readonly signal: AbortSignal;
  /** How often to check whether listed skills have changed, in ms. */
  readonly skillsEveryMs?: number;
  /** Called for problems of the connection. */
  readonly onError: (error: Error) => void;
}

const SKILLS_EVERY_MS = 30_000;

/** A transport whose `ended` resolves once it is closed by either side. */
class EndingTransport extends StdioServerTransport {
  readonly #ended = Promise.withResolvers<void>();
  readonly ended = this.#ended.promise;

  override async close(): Promise<void> {
    await super.close();
    this.#ended.resolve();
  }
}

/**
 * Serves one client until its input ends. Only protocol messages go to `stdout`. A line that is no message gets an error answer, and
 * reading continues.
 *
 * @returns the error that broke the connection early, such as a message that is too long; null if none did
 */
export async function serveOverStdio(calls: GatewayCalls, caller: McpCaller, options: StdioOptions): Promise<Error | null> {
  const { stdin, stdout, signal, onError, skillsEveryMs: everyMs = SKILLS_EVERY_MS } = options;
  const over = new AbortController();
  const ended = Promise.withResolvers<Error | null>();
  for (const event of ['close', 'error']) stdin.once(event, () => (stdin.readableEnded ? undefined : ended.resolve(null)));
  signal.addEventListener('abort', () => ended.resolve(null), { once: true });
  let last: Error | null = null;
  const onerror = (error: Error) => {
    last = error;
    onError(error);
  };
  const lines = new MessageLines((refusal, why) => {
    onError(new Error(why));
    // The SDK's type has no answer without an id, which JSON-RPC uses for unreadable messages. Sending to a client that is gone may fail.
    if (refusal !== null) transport.send(refusal as JSONRPCErrorResponse).catch(() => undefined);
  });
  const transport = new EndingTransport(lines, stdout);
  lines.once('end', () => ended.resolve(null));
  stdin.pipe(lines);
  const watch = { everyMs, signal: over.signal };
  const handle = serveStdio(() => etudeServer(calls, caller, options, watch), { transport, onerror });
  if (signal.aborted) ended.resolve(null);
  const broken = await Promise.race([ended.promise, transport.ended.then(() => last)]);
  over.abort();
  await handle.close();
  return isClientGone(broken) ? null : broken;
}

/** The client closed its end of stdout before it closed stdin. */
const isClientGone = (error: Error | null) => error !== null && 'code' in error && error.code === 'EPIPE';
