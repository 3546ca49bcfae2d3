import type { ChatMessage, ChatRequest } from '@etude/domain/ports/model';
import type OpenAI from 'openai';

/** Which parts of the protocol this server takes. Starts optimistic, learns from refusals. */
export interface Dialect {
  readonly stream: boolean;
  readonly streamOptions: boolean;
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens';
  readonly temperature: boolean;
}

export const FULL_DIALECT: Dialect = { stream: true, streamOptions: true, tokenLimit: 'max_tokens', temperature: true };

type Body = OpenAI.ChatCompletionCreateParams;

export function requestBody(request: ChatRequest, model: string, dialect: Dialect): Body {
  const tools = request.tools?.map(({ name, description, inputSchema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: inputSchema },
  }));
  return {
    model,
    messages: request.messages.map(wireMessage),
    ...(tools?.length ? { tools } : {}),
    ...(request.temperature !== undefined && dialect.temperature ? { temperature: request.temperature } : {}),
    ...(request.outputTokensMax === undefined ? {} : { [dialect.tokenLimit]: request.outputTokensMax }),
    ...(dialect.stream
      ? { stream: true, ...(dialect.streamOptions ? { stream_options: { include_usage: true } } : {}) }
      : { stream: false }),
  };
}

function wireMessage({ role, content, toolCallId, toolCalls }: ChatMessage): OpenAI.ChatCompletionMessageParam {
  if (role === 'tool') return { role, content, tool_call_id: toolCallId ?? '' };
  if (role !== 'assistant' || !toolCalls?.length) return { role, content };
  return {
    role,
    content: content === '' ? null : content,
    tool_calls: toolCalls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } })),
  };
}

/**
 * The next simpler dialect after a refusal with this message; null where the refusal is about something else.
 * Why: servers differ in what they take, and say so only by refusing.
 */
export function simpler(dialect: Dialect, request: ChatRequest, message: string): Dialect | null {
  if (request.outputTokensMax !== undefined && dialect.tokenLimit === 'max_tokens' && message.includes('max_completion_tokens')) {
    return { ...dialect, tokenLimit: 'max_completion_tokens' };
  }
  if (request.temperature !== undefined && dialect.temperature && /temperature/i.test(message)) return { ...dialect, temperature: false };
  if (
    !/stream|unknown|unrecogni[sz]ed|unsupported|not supported|not permitted|unexpected|additional|extra (field|input|param)|\(no body\)/i.test(
      message,
    )
  )
    return null;
  if (dialect.stream && dialect.streamOptions) return { ...dialect, streamOptions: false };
  if (dialect.stream) return { ...dialect, stream: false };
  return null;
}
