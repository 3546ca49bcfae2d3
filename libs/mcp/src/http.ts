import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, PROTOCOL_VERSION_META_KEY, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { callerOf, type McpCaller, SESSION_HEADER } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';
import { NO_BATCHES } from './messages.js';

export interface HttpOptions extends EtudeServerOptions {
  /** Called for refused requests and for failures while answering. */
  readonly onError: (error: Error) => void;
  /** Maximum of open streams of change notifications. */
  readonly subscriptionsMax?: number;
}

/** Stateless streamable HTTP. Each request carries all it needs, so any gateway can answer it. */
export interface McpHttp {
  /**
   * Answers one request, after its key was checked and its body read.
   *
   * @param body parsed JSON; undefined if there is none
   */
  handle(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void>;
  close(): Promise<void>;
}

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: { readonly _meta?: Readonly<Record<string, unknown>>; readonly requestId?: unknown };
}

/** Answers a whole request with a JSON-RPC error. */
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
      // Revisions before 2026-07-28 begin with a handshake and cancel by a message.
      if (method !== undefined && params?.['_meta']?.[PROTOCOL_VERSION_META_KEY] === undefined) {
        // The session id for the client's later calls. Only the client keeps it.
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
 * Open answers by caller and request id. Before 2026-07-28, a client cancels with a separate HTTP request.
 * That request can end the first one here if the same process serves both.
 */
class RunningCalls {
  readonly #open = new Map<string, ServerResponse>();

  /** Requests without an id, or from clients without a session, can't be cancelled. */
  add(caller: McpCaller, id: unknown, response: ServerResponse): void {
    const key = keyOf(caller, id);
    if (key === null) return;
    this.#open.set(key, response);
    response.once('close', () => {
      if (this.#open.get(key) === response) this.#open.delete(key);
    });
  }

  /** Closes the answer, which ends its call. */
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
