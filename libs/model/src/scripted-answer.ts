import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Conversation, filled, type Match } from './script-matching.js';
import { approximateTokens } from './chat-answer.js';

const Part = z.looseObject({ text: z.string().optional() });
const Message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.union([z.string(), Part])), z.null()]).optional(),
});

export const ChatBody = z.looseObject({
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});
export type ChatBody = z.infer<typeof ChatBody>;

/** The conversation of a request. Its digest leaves out the fields that say how the answer is sent. */
export function conversationOf(request: ChatBody): Conversation {
  const body = { ...request, stream: undefined, stream_options: undefined };
  return {
    messages: body.messages.map(({ role, content }) => ({ role, text: textOf(content) })),
    digest: createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 32),
  };
}

function textOf(content: ChatBody['messages'][number]['content']): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('');
}

export interface ScriptedReply {
  readonly id: string;
  readonly model: string;
  readonly text: string;
  readonly finishReason: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Length of a chunk of streamed text. */
const PIECE_CHARS = 32;

export function replyOf({ answer, captures }: Match, { digest, messages }: Conversation, model: string): ScriptedReply {
  const text = answer.empty ? '' : filled(answer.reply ?? '', captures);
  return {
    id: `chatcmpl-scripted-${digest.slice(0, 16)}`,
    model,
    text,
    finishReason: answer.finish_reason,
    inputTokens: answer.usage?.input_tokens ?? approximateTokens(messages.reduce((sum, message) => sum + message.text.length, 0)),
    outputTokens: answer.usage?.output_tokens ?? approximateTokens(text.length),
  };
}

const common = (reply: ScriptedReply, object: string) => ({
  id: reply.id,
  object,
  created: 0,
  model: reply.model,
  system_fingerprint: 'scripted',
});

function usageOf({ inputTokens, outputTokens }: ScriptedReply) {
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens };
}

export function completion(reply: ScriptedReply): object {
  return {
    ...common(reply, 'chat.completion'),
    choices: [{ index: 0, message: { role: 'assistant', content: reply.text }, finish_reason: reply.finishReason }],
    usage: usageOf(reply),
  };
}

/** The server-sent events of one answer. */
export function streamEvents(reply: ScriptedReply, includeUsage: boolean): string {
  const chunk = (delta: object, finishReason: string | null = null) =>
    event({ ...common(reply, 'chat.completion.chunk'), choices: [{ index: 0, delta, finish_reason: finishReason }] });
  const begin = chunk({ role: 'assistant', content: '' });
  const text = pieces(reply.text).map((content) => chunk({ content }));
  const usage = includeUsage ? [event({ ...common(reply, 'chat.completion.chunk'), choices: [], usage: usageOf(reply) })] : [];
  return [begin, ...text, chunk({}, reply.finishReason), ...usage, 'data: [DONE]\n\n'].join('');
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** Cuts a text into chunks, never within a character. */
function pieces(text: string): string[] {
  const characters = Array.from(text);
  return Array.from({ length: Math.ceil(characters.length / PIECE_CHARS) }, (_, i) =>
    characters.slice(i * PIECE_CHARS, (i + 1) * PIECE_CHARS).join(''),
  );
}
