import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Conversation } from './script-matching.js';
import { approximateTokens } from './token-count.js';

const Part = z.looseObject({ text: z.string().optional() });
const Message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.union([z.string(), Part])), z.null()]).optional(),
});

export const ChatBody = z.looseObject({
  model: z.string().default(''),
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});
export type ChatBody = z.infer<typeof ChatBody>;

export const EmbeddingsBody = z.looseObject({
  model: z.string().default(''),
  input: z.union([z.string().transform((text) => [text]), z.array(z.string())]),
  encoding_format: z.enum(['float', 'base64']).default('float'),
});

export const digestOf = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);

/** How the answer is to be sent makes no other conversation. */
export function conversationOf(request: ChatBody): Conversation {
  const body = { ...request, stream: undefined, stream_options: undefined };
  return {
    model: body.model,
    messages: body.messages.map(({ role, content }) => ({ role, text: textOf(content) })),
    digest: digestOf(body),
  };
}

/** About four characters a token, messages and tools together. */
export function inputTokensOf(body: ChatBody): number {
  const tools = body['tools'] === undefined ? '' : JSON.stringify(body['tools']);
  return approximateTokens(body.messages.reduce((sum, message) => sum + textOf(message.content).length, tools.length));
}

function textOf(content: ChatBody['messages'][number]['content']): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('');
}
