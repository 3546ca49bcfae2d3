import { parseExactJson } from '@etude/contracts/json';
import { parseJSONRPCMessage, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** An error of JSON-RPC. */
export interface MessageRefusal {
  readonly jsonrpc: '2.0';
  /** Of the request that is refused; null where it can't be told. */
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string };
}

/** `refusal` is null for what is wrong and no request: nobody waits for an answer to an answer. */
export type ReadMessage = { readonly message: unknown } | { readonly refusal: MessageRefusal | null; readonly why: string };

export const NO_BATCHES = 'Send one message at a time: batches left the protocol with 2025-06-18.';

/** One message out of its text. A request whose numbers or texts would change on their way is refused, and not what was changed run. */
export function readMessage(text: string): ReadMessage {
  try {
    return { message: parseExactJson(text) };
  } catch (error) {
    const why = (error as Error).message;
    if (error instanceof SyntaxError) return refused(null, ProtocolErrorCode.ParseError, `The message is not JSON: ${why}`);
    return refused(JSON.parse(text), ProtocolErrorCode.InvalidParams, why);
  }
}

/** As `readMessage`; what is JSON and no message of JSON-RPC is refused as well. */
export function readRpcMessage(text: string): ReadMessage {
  const read = readMessage(text);
  if (!('message' in read)) return read;
  try {
    parseJSONRPCMessage(read.message);
    return read;
  } catch {
    const what = Array.isArray(read.message)
      ? NO_BATCHES
      : 'This is no message of JSON-RPC 2.0: a request has "jsonrpc": "2.0", an "id" that is a text or a whole number, a "method", and "params" that are an object.';
    return refused(read.message, ProtocolErrorCode.InvalidRequest, what);
  }
}

function refused(message: unknown, code: number, why: string): ReadMessage {
  const { id, ...rest } = (typeof message === 'object' && message !== null ? message : {}) as Readonly<Record<string, unknown>>;
  if (('result' in rest || 'error' in rest) && !('method' in rest)) return { refusal: null, why };
  const isId = typeof id === 'string' || Number.isSafeInteger(id);
  return { refusal: { jsonrpc: '2.0', id: isId ? (id as string | number) : null, error: { code, message: why } }, why };
}
