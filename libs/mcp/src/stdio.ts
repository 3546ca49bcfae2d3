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
  /** Ends the server as the end of its input does. */
  readonly signal: AbortSignal;
  /** How often it is looked whether the skills that were listed have changed. */
  readonly skillsEveryMs?: number;
  /** Hears of what is wrong with the connection. */
  readonly onError: (error: Error) => void;
}

const SKILLS_EVERY_MS = 30_000;

/** Tells of its end, whoever ends it. */
class EndingTransport extends StdioServerTransport {
  readonly #ended = Promise.withResolvers<void>();
  readonly ended = this.#ended.promise;

  override async close(): Promise<void> {
    await super.close();
    this.#ended.resolve();
  }
}

/**
 * Serves one client until its input ends. Nothing but messages of the protocol goes to `stdout`. What is no message is answered with an
 * error, and the next line is read.
 *
 * Answers what broke the connection before that, such as a message that is too long; null where nothing did.
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
    // The schema of the SDK has no answer without an id, which JSON-RPC has for what can't be read. A client that is gone is told nothing.
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

/** It stopped to read before it closed the other pipe. */
const isClientGone = (error: Error | null) => error !== null && 'code' in error && error.code === 'EPIPE';
