import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isInitializeRequest } from '@modelcontextprotocol/server';
import { callerOf, SESSION_HEADER } from './caller.js';
import { etudeServer, type EtudeServerOptions } from './etude-server.js';
import type { GatewayCalls } from './gateway-calls.js';
import { refuseHttp } from './refuse-http.js';

export interface HttpOptions extends EtudeServerOptions {
  /** Called for refused requests and for failures while answering. */
  readonly onError: (error: Error) => void;
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

export function createMcpHttp(calls: GatewayCalls, options: HttpOptions): McpHttp {
  const onerror = options.onError;
  const serve = (headers: Headers | undefined) =>
    etudeServer(
      calls,
      callerOf((name) => headers?.get(name)),
      options,
    );
  const handler = createMcpHandler(({ requestInfo }) => serve(requestInfo?.headers), { onerror });
  const node = toNodeHandler(handler, { onerror });
  return {
    async handle(request, response, body) {
      try {
        callerOf((name) => request.headers[name]?.toString());
      } catch (error) {
        return refuseHttp(response, 400, (error as RangeError).message);
      }
      // Revisions before 2026-07-28 begin with a handshake. Its answer has the session id for later calls, which only the client keeps.
      if (isInitializeRequest(body)) response.setHeader(SESSION_HEADER, randomUUID());
      await node(request, response, body);
    },
    close: () => handler.close(),
  };
}
