import { parseExactJson } from '@etude/contracts/json';
import { parseJSONRPCMessage, ProtocolErrorCode } from '@modelcontextprotocol/server';

export interface MessageRefusal {
  readonly jsonrpc: '2.0';
  /** Id of the refused request; null if it can't be determined. */
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string };
}

/** `refusal` is null if the wrong message is an answer: answers get no answer. */
export type ReadMessage = { readonly message: unknown } | { readonly refusal: MessageRefusal | null; readonly why: string };

export const NO_BATCHES = 'Send one message at a time: batches left the protocol with 2025-06-18.';

/** Parses one message. Refuses it if parsing would change a number or text, so that no altered request runs. */
export function readMessage(text: string): ReadMessage {
  try {
    return { message: parseExactJson(text) };
  } catch (error) {
    const why = (error as Error).message;
    if (error instanceof SyntaxError) return refused(null, ProtocolErrorCode.ParseError, `The message is not JSON: ${why}`);
    return refused(JSON.parse(text), ProtocolErrorCode.InvalidParams, why);
  }
}

/** Parses one message like `readMessage`, and also refuses JSON that isn't a JSON-RPC message. */
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
