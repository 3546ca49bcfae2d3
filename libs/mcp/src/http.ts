import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isInitializeRequest } from '@modelcontextprotocol/server';
import { callerOf, type McpCaller, SESSION_HEADER } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';
import { refuseHttp } from './refuse-http.js';

interface HttpOptions extends EtudeServerOptions {
  readonly onError: (error: Error) => void;
}

/** Stateless streamable HTTP. Each request carries all it needs, so any gateway can answer it. */
export interface McpHttp {
  /** Answers one POST request, after its key was checked and its message read. */
  handle(request: IncomingMessage, response: ServerResponse, message: object): Promise<void>;
  close(): Promise<void>;
}

export function createMcpHttp(calls: GatewayCalls, options: HttpOptions): McpHttp {
  const onerror = options.onError;
  const serve = (caller: McpCaller) => etudeServer(calls, caller, options);
  const handler = createMcpHandler(({ requestInfo }) => serve(callerOf((name) => requestInfo?.headers.get(name))), { onerror });
  const node = toNodeHandler(handler, { onerror });
  return {
    async handle(request, response, message) {
      try {
        callerOf((name) => request.headers[name]?.toString());
      } catch (error) {
        return refuseHttp(response, 400, (error as RangeError).message);
      }
      // Revisions before 2026-07-28 begin with a handshake. Its answer has the session id for later calls, which only the client keeps.
      if (isInitializeRequest(message)) response.setHeader(SESSION_HEADER, randomUUID());
      await node(request, response, message);
    },
    close: () => handler.close(),
  };
}
