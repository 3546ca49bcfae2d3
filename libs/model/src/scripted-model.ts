import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { type Match, ScriptedCalls, ScriptMatcher } from './script-matching.js';
import type { Script } from './script.js';
import {
  ChatBody,
  type ChatBody as ChatRequestBody,
  completion,
  conversationOf,
  replyOf,
  type ScriptedReply,
  streamEvents,
} from './scripted-answer.js';

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

async function send(response: ServerResponse, { answer }: Match, reply: ScriptedReply, body: ChatRequestBody): Promise<void> {
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
