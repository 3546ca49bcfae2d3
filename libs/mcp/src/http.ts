import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, PROTOCOL_VERSION_META_KEY, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { callerOf, type McpCaller, SESSION_HEADER } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';
import { NO_BATCHES } from './messages.js';

export interface HttpOptions extends EtudeServerOptions {
  /** Hears of requests that were refused and of what went wrong with an answer. */
  readonly onError: (error: Error) => void;
  /** Streams of changes that may be open at once. */
  readonly subscriptionsMax?: number;
}

/** Streamable HTTP without state: whatever a request needs comes with it, so that any gateway answers it. */
export interface McpHttp {
  /**
   * Answers one request whose key was checked and whose body was read.
   *
   * @param body parsed JSON; undefined where there is none
   */
  handle(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void>;
  /** Ends what is still running. */
  close(): Promise<void>;
}

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: { readonly _meta?: Readonly<Record<string, unknown>>; readonly requestId?: unknown };
}

/** An answer that is no result: an error of JSON-RPC, for the whole request. */
export function refuseHttp(
  response: ServerResponse,
  status: number,
  message: string,
  code: number = ProtocolErrorCode.InvalidRequest,
  id: string | number | null = null,
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id }));
}

export function createMcpHttp(calls: GatewayCalls, options: HttpOptions): McpHttp {
  const { onError, subscriptionsMax: maxSubscriptions } = options;
  const handler = createMcpHandler(
    ({ requestInfo }) =>
      etudeServer(
        calls,
        callerOf((name) => requestInfo?.headers.get(name)),
        options,
      ),
    {
      onerror: onError,
      ...(maxSubscriptions === undefined ? {} : { maxSubscriptions }),
    },
  );
  const node = toNodeHandler(handler, { onerror: onError });
  const running = new RunningCalls();
  return {
    async handle(request, response, body) {
      if (Array.isArray(body)) return refuseHttp(response, 400, NO_BATCHES);
      let caller: McpCaller;
      try {
        caller = callerOf((name) => request.headers[name]?.toString());
      } catch (error) {
        return refuseHttp(response, 400, (error as RangeError).message);
      }
      const { id, method, params } = (body ?? {}) as Message;
      // Of the revisions before 2026-07-28, which begin with a handshake and cancel by a message.
      if (method !== undefined && params?.['_meta']?.[PROTOCOL_VERSION_META_KEY] === undefined) {
        // A name for what the client's calls belong to; the client alone keeps it.
        if (method === 'initialize') response.setHeader(SESSION_HEADER, randomUUID());
        if (method === 'notifications/cancelled') running.cancel(caller, params?.requestId);
        else running.add(caller, id, response);
      }
      await node(request, response, body);
    },
    close: () => handler.close(),
  };
}

/**
 * Answers that are still open, by whose they are and the id of their request. Before 2026-07-28 a client cancels with a request of its
 * own, which meets none of what serves the first; it finds it here, where the same process serves both.
 */
class RunningCalls {
  readonly #open = new Map<string, ServerResponse>();

  /** A request without an id, or of a client without a session, can't be cancelled. */
  add(caller: McpCaller, id: unknown, response: ServerResponse): void {
    const key = keyOf(caller, id);
    if (key === null) return;
    this.#open.set(key, response);
    response.once('close', () => {
      if (this.#open.get(key) === response) this.#open.delete(key);
    });
  }

  /** Closing its answer ends the call behind it. */
  cancel(caller: McpCaller, id: unknown): void {
    const response = this.#open.get(keyOf(caller, id) ?? '');
    if (response?.headersSent) response.end();
    else response?.destroy();
  }
}

function keyOf({ session, metadata, agent, user }: McpCaller, id: unknown): string | null {
  if (session === '' || (typeof id !== 'string' && typeof id !== 'number')) return null;
  return JSON.stringify([metadata['authorization'] ?? '', agent, user, session, id]);
}
