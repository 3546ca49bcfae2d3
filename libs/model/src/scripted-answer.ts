import type { Match } from './script-matching.js';
import { filled } from './script-matching.js';
import { approximateTokens, callChars } from './token-count.js';

export interface ScriptedReply {
  readonly id: string;
  readonly model: string;
  readonly text: string;
  readonly toolCalls: ReadonlyArray<{ id: string; name: string; arguments: string }>;
  readonly finishReason: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Of a streamed text, in characters. */
const PIECE_CHARS = 32;

export function replyOf({ answer, captures }: Match, origin: { model: string; digest: string; inputTokens: number }): ScriptedReply {
  const text = answer.empty ? '' : filled(answer.reply ?? '', captures);
  const toolCalls = (answer.tool_calls ?? []).map((call, i) => ({
    id: `call_${origin.digest.slice(0, 8)}_${i + 1}`,
    name: call.name,
    arguments: typeof call.arguments === 'string' ? filled(call.arguments, captures) : JSON.stringify(filledDeep(call.arguments, captures)),
  }));
  return {
    id: `chatcmpl-scripted-${origin.digest.slice(0, 16)}`,
    model: origin.model,
    text,
    toolCalls,
    finishReason: answer.finish_reason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop'),
    inputTokens: answer.usage?.input_tokens ?? origin.inputTokens,
    outputTokens: answer.usage?.output_tokens ?? approximateTokens(text.length + callChars(toolCalls)),
  };
}

function filledDeep(value: unknown, captures: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return filled(value, captures);
  if (Array.isArray(value)) return value.map((item) => filledDeep(item, captures));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filledDeep(item, captures)]));
}

const common = (reply: ScriptedReply, object: string) => ({
  id: reply.id,
  object,
  created: 0,
  model: reply.model,
  system_fingerprint: 'scripted',
});
const wireCall = (call: ScriptedReply['toolCalls'][number]) => ({
  id: call.id,
  type: 'function',
  function: { name: call.name, arguments: call.arguments },
});

function usageOf({ inputTokens, outputTokens }: ScriptedReply) {
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens };
}

export function completion(reply: ScriptedReply): object {
  const message = {
    role: 'assistant',
    content: reply.text === '' && reply.toolCalls.length > 0 ? null : reply.text,
    ...(reply.toolCalls.length > 0 ? { tool_calls: reply.toolCalls.map(wireCall) } : {}),
  };
  return {
    ...common(reply, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason: reply.finishReason }],
    usage: usageOf(reply),
  };
}

/** Server-sent events of one answer. With `cutAfter`, those until so many characters of text were sent, and no end. */
export function streamEvents(reply: ScriptedReply, includeUsage: boolean, cutAfter: number | undefined): string[] {
  const chunk = (delta: object, finishReason: string | null = null) =>
    event({ ...common(reply, 'chat.completion.chunk'), choices: [{ index: 0, delta, finish_reason: finishReason }] });
  const begin = chunk({ role: 'assistant', content: '' });
  const text = pieces(cutAfter === undefined ? reply.text : reply.text.slice(0, cutAfter)).map((content) => chunk({ content }));
  if (cutAfter !== undefined) return [begin, ...text];
  const calls = reply.toolCalls.flatMap((call, index) => [
    chunk({ tool_calls: [{ index, ...wireCall({ ...call, arguments: '' }) }] }),
    ...pieces(call.arguments).map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
  ]);
  const usage = includeUsage ? [event({ ...common(reply, 'chat.completion.chunk'), choices: [], usage: usageOf(reply) })] : [];
  return [begin, ...text, ...calls, chunk({}, reply.finishReason), ...usage, 'data: [DONE]\n\n'];
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** Cut between characters, never inside one. */
function pieces(text: string): string[] {
  const characters = Array.from(text);
  return Array.from({ length: Math.ceil(characters.length / PIECE_CHARS) }, (_, i) =>
    characters.slice(i * PIECE_CHARS, (i + 1) * PIECE_CHARS).join(''),
  );
}
