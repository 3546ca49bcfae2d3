import { parseExactJson } from '@etude/contracts/json';
import { type JSONRPCMessage, parseJSONRPCMessage, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** `refusal` is null if the wrong message is an answer: answers get no answer. Its `id` is null if it can't be determined. */
type ReadMessage = { readonly message: JSONRPCMessage } | { readonly refusal: ReturnType<typeof refusalOf> | null; readonly why: string };

const NO_BATCHES = 'Send one message at a time. The protocol has no batches since 2025-06-18.';
const NO_MESSAGE =
  'This is not a JSON-RPC 2.0 message. A request has "jsonrpc": "2.0", an "id" (text or whole number), a "method", and "params" (an object).';

/** Parses one JSON-RPC message. Refuses it if parsing would change a number or text, so that no altered request runs. */
export function readMessage(text: string): ReadMessage {
  let message: unknown;
  try {
    message = parseExactJson(text);
  } catch (error) {
    const why = (error as Error).message;
    if (error instanceof SyntaxError) return refused(null, ProtocolErrorCode.ParseError, `The message is not JSON: ${why}`);
    return refused(JSON.parse(text), ProtocolErrorCode.InvalidParams, why);
  }
  try {
    parseJSONRPCMessage(message);
    // Returns the original message, because a parsed copy could lack the key "__proto__" in arguments.
    return { message: message as JSONRPCMessage };
  } catch {
    return refused(message, ProtocolErrorCode.InvalidRequest, Array.isArray(message) ? NO_BATCHES : NO_MESSAGE);
  }
}

function refused(message: unknown, code: number, why: string): ReadMessage {
  const { id, ...rest } = (typeof message === 'object' && message !== null ? message : {}) as Readonly<Record<string, unknown>>;
  if (('result' in rest || 'error' in rest) && !('method' in rest)) return { refusal: null, why };
  const isId = typeof id === 'string' || Number.isSafeInteger(id);
  return { refusal: refusalOf(isId ? (id as string | number) : null, code, why), why };
}

const refusalOf = (id: string | number | null, code: number, message: string) => ({ jsonrpc: '2.0', id, error: { code, message } });
