import type { ServerResponse } from 'node:http';

/** JSON-RPC's code for a message that is no valid request. */
const INVALID_REQUEST = -32_600;

export function refuseHttp(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: INVALID_REQUEST, message }, id: null }));
}
