import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Conversation, filled, type Match, ScriptedCalls, ScriptMatcher } from './script-matching.js';
import type { Script } from './script.js';
import { approximateTokens } from './chat-answer.js';

/** Answers requests from a script and keeps a list of them. */
export class ScriptedModel {
  readonly name: string;
  readonly calls = new ScriptedCalls();
  readonly #matcher: ScriptMatcher;

  /** @param source names the script in messages */
  constructor(
    script: Script,
    private readonly source: string,
  ) {
    this.#matcher = new ScriptMatcher(script);
    this.name = `scripted/${script.name}`;
  }

  list(): object {
    return { object: 'list', data: [{ id: this.name, object: 'model', created: 0, owned_by: 'etude-scripted' }] };
  }

  async chat(given: unknown, response: ServerResponse): Promise<void> {
    const parsed = ChatBody.safeParse(given);
    if (!parsed.success) return refuse(response, 400, complaint(parsed.error));
    const body = parsed.data;
    const conversation = conversationOf(body);
    const about = conversation.messages.at(-1)?.text ?? '';
    const match = this.#matcher.match(conversation);
    const reply = match ? replyOf(match, conversation, this.name) : null;
    const status = match ? (match.answer.status ?? 200) : 404;
    const answered = this.calls.add({
      rule: match?.rule ?? null,
      status,
      stream: body.stream === true,
      bodyDigest: conversation.digest,
      inputTokens: status === 200 ? (reply?.inputTokens ?? 0) : 0,
      outputTokens: status === 200 ? (reply?.outputTokens ?? 0) : 0,
      about,
    });
    response.once('finish', () => answered('fully'));
    // The caller went away before everything was sent.
    response.once('close', () => answered('aborted'));
    if (!match || !reply)
      return refuse(
        response,
        404,
        `no rule of ${this.source} fits the message that starts ${JSON.stringify(about.slice(0, 120))}; add a rule to the script, or a default`,
        'no_rule',
      );
    await send(response, match, reply, body);
  }
}

async function send(response: ServerResponse, { answer }: Match, reply: ScriptedReply, body: ChatBody): Promise<void> {
  await pause(answer.delay_ms, response);
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if (answer.status !== undefined) return refuse(response, answer.status, answer.error ?? `the script says status ${answer.status}`);
  if (body.stream !== true) return sendJson(response, 200, completion(reply));
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.end(streamEvents(reply, body.stream_options?.include_usage === true));
}

/** @throws AbortError when the caller goes away in the meantime */
async function pause(ms: number, response: ServerResponse): Promise<void> {
  if (ms === 0) return;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  await sleep(ms, undefined, { signal: gone.signal });
}

export function refuse(response: ServerResponse, status: number, message: string, code: string | null = null): void {
  sendJson(response, status, { error: { message, type: 'scripted', code } });
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function complaint(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`).join('; ');
}

const Part = z.looseObject({ text: z.string().optional() });
const Message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.union([z.string(), Part])), z.null()]).optional(),
});

const ChatBody = z.looseObject({
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});
type ChatBody = z.infer<typeof ChatBody>;

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

interface ScriptedReply {
  readonly id: string;
  readonly model: string;
  readonly text: string;
  readonly calls: readonly object[];
  readonly finishReason: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Length of a chunk of streamed text. */
const PIECE_CHARS = 32;

function replyOf({ answer, captures }: Match, { digest, messages }: Conversation, model: string): ScriptedReply {
  const text = answer.empty ? '' : filled(answer.reply ?? '', captures);
  const calls = (answer.tool_calls ?? []).map(({ name, arguments: given }, index) => ({
    index,
    id: `call_${digest.slice(0, 8)}_${index + 1}`,
    type: 'function',
    function: { name, arguments: filled(JSON.stringify(given), captures) },
  }));
  return {
    id: `chatcmpl-scripted-${digest.slice(0, 16)}`,
    model,
    text,
    calls,
    finishReason: calls.length > 0 ? 'tool_calls' : answer.finish_reason,
    inputTokens: answer.usage?.input_tokens ?? approximateTokens(messages.reduce((sum, message) => sum + message.text.length, 0)),
    outputTokens: answer.usage?.output_tokens ?? approximateTokens(text.length + (calls.length === 0 ? 0 : JSON.stringify(calls).length)),
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
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: reply.text, ...(reply.calls.length === 0 ? {} : { tool_calls: reply.calls }) },
        finish_reason: reply.finishReason,
      },
    ],
    usage: usageOf(reply),
  };
}

/** The server-sent events of one answer. */
function streamEvents(reply: ScriptedReply, includeUsage: boolean): string {
  const chunk = (delta: object, finishReason: string | null = null) =>
    event({ ...common(reply, 'chat.completion.chunk'), choices: [{ index: 0, delta, finish_reason: finishReason }] });
  const begin = chunk({ role: 'assistant', content: '' });
  const text = pieces(reply.text).map((content) => chunk({ content }));
  const calls = reply.calls.length === 0 ? [] : [chunk({ tool_calls: reply.calls })];
  const usage = includeUsage ? [event({ ...common(reply, 'chat.completion.chunk'), choices: [], usage: usageOf(reply) })] : [];
  return [begin, ...text, ...calls, chunk({}, reply.finishReason), ...usage, 'data: [DONE]\n\n'].join('');
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** Cuts a text into chunks, never within a character. */
function pieces(text: string): string[] {
  const characters = Array.from(text);
  return Array.from({ length: Math.ceil(characters.length / PIECE_CHARS) }, (_, i) =>
    characters.slice(i * PIECE_CHARS, (i + 1) * PIECE_CHARS).join(''),
  );
}
