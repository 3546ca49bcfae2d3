import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { approximateTokens } from '@etude/domain/model-answer';
import { checkScript, type ScriptInput } from './script.js';
import { ChatBody, type Conversation, conversationOf, filled, type Match, ScriptMatcher } from './script-matching.js';

interface ScriptedModelOptions {
  readonly script: ScriptInput;
  /** Names the script in messages. */
  readonly source?: string;
  /** Port on the loopback address. 0, the default, means any free port. */
  readonly port?: number;
}

interface ScriptedCall {
  /** Counted from 1, in the order of arrival. */
  readonly number: number;
  /** The rule that answered, or null if no rule fitted. */
  readonly rule: string | null;
  /** `aborted` means that the caller closed the connection before everything was sent. */
  answered: 'pending' | 'fully' | 'aborted';
  readonly status: number;
  readonly bodyDigest: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly about: string;
}

const HOST = '127.0.0.1';
const CALLS_KEPT_MAX = 10_000;
const ABOUT_CHARS = 200;

export interface RunningScriptedModel {
  /** The value for OPENAI_BASE_URL; it ends with /v1. */
  readonly url: string;
  readonly port: number;
  /** `scripted/<name of the script>`. */
  readonly model: string;
  /** The last 10,000 requests for chat completions. Their numbers count all requests. */
  calls(): readonly ScriptedCall[];
  close(): Promise<void>;
}

/**
 * Starts an HTTP server that speaks OpenAI's protocol and answers from a script. Every answer is marked as scripted: its
 * `system_fingerprint` is "scripted", and its header `x-etude-scripted` is 1.
 *
 * @throws EtudeError INVALID_ARGUMENT if the script is wrong; Error EADDRINUSE if the port is taken
 */
export async function startScriptedModel({
  script: given,
  source = 'the script',
  port = 0,
}: ScriptedModelOptions): Promise<RunningScriptedModel> {
  const script = checkScript(given);
  const model: ScriptedModel = { name: `scripted/${script.name}`, source, matcher: new ScriptMatcher(script), calls: [] };
  const server = createServer((request, response) => {
    serve(model, request, response).catch((error: Error) => response.destroy(error));
  });
  await once(server.listen(port, HOST), 'listening');
  const actual = (server.address() as AddressInfo).port;
  return {
    url: `http://${HOST}:${actual}/v1`,
    port: actual,
    model: model.name,
    calls: () => [...model.calls],
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface ScriptedModel {
  readonly name: string;
  readonly source: string;
  readonly matcher: ScriptMatcher;
  readonly calls: ScriptedCall[];
}

async function serve(model: ScriptedModel, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('x-etude-scripted', '1');
  const path = new URL(request.url ?? '/', 'http://scripted').pathname.replace(/\/$/, '');
  const route = `${request.method} ${path}`;
  const { name, calls } = model;
  if (route === 'GET /v1/models')
    return sendJson(response, 200, { object: 'list', data: [{ id: name, object: 'model', created: 0, owned_by: 'etude-scripted' }] });
  if (route === 'GET /scripted/calls') return sendJson(response, 200, { model: name, total: calls.at(-1)?.number ?? 0, calls });
  if (route !== 'POST /v1/chat/completions') {
    request.resume();
    return refuse(
      response,
      404,
      `The scripted model has no ${route}. It has POST /v1/chat/completions, GET /v1/models and GET /scripted/calls.`,
    );
  }
  const body = await json(request).catch((error: Error) => error);
  if (body instanceof Error) return refuse(response, 400, `the request is not JSON: ${body.message}`);
  return chat(model, body, response);
}

async function chat({ name, source, matcher, calls }: ScriptedModel, given: unknown, response: ServerResponse): Promise<void> {
  const { data: body, error } = ChatBody.safeParse(given);
  if (!body) {
    const wrong = error.issues.map(({ path, message }) => `${path.join('.') || 'body'}: ${message}`);
    return refuse(response, 400, wrong.join('; '));
  }
  const conversation = conversationOf(body);
  const about = conversation.messages.at(-1)?.text ?? '';
  const match = matcher.match(conversation);
  const reply = match && replyOf(match, conversation, name);
  const status = match ? (match.answer.status ?? 200) : 404;
  const call: ScriptedCall = {
    number: (calls.at(-1)?.number ?? 0) + 1,
    rule: match?.rule ?? null,
    answered: 'pending',
    status,
    bodyDigest: conversation.digest,
    inputTokens: status === 200 ? (reply?.usage.prompt_tokens ?? 0) : 0,
    outputTokens: status === 200 ? (reply?.usage.completion_tokens ?? 0) : 0,
    about: about.slice(0, ABOUT_CHARS),
  };
  calls.push(call);
  if (calls.length > CALLS_KEPT_MAX) calls.shift();
  response.once('finish', () => (call.answered = 'fully'));
  response.once('close', () => {
    if (call.answered === 'pending') call.answered = 'aborted';
  });
  if (match && reply) return send(response, match, reply, body);
  const message = `no rule of ${source} fits the message that starts ${JSON.stringify(about.slice(0, 120))}; add a rule to the script, or a default`;
  return refuse(response, 404, message, 'no_rule');
}

async function send(response: ServerResponse, { answer }: Match, reply: ScriptedReply, body: ChatBody): Promise<void> {
  await pause(answer.delay_ms, response);
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if (answer.status !== undefined) return refuse(response, answer.status, answer.error ?? `the script says status ${answer.status}`);
  if (body.stream !== true) return sendJson(response, 200, completion(reply));
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.end(streamEvents(reply, body.stream_options?.include_usage === true));
}

/** Waits. @throws AbortError if the caller closes the connection in the meantime */
async function pause(ms: number, response: ServerResponse): Promise<void> {
  if (ms === 0) return;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  await sleep(ms, undefined, { signal: gone.signal });
}

function refuse(response: ServerResponse, status: number, message: string, code: string | null = null): void {
  sendJson(response, status, { error: { message, type: 'scripted', code } });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

type ScriptedReply = ReturnType<typeof replyOf>;

function replyOf({ answer, captures }: Match, { digest, messages }: Conversation, model: string) {
  const text = answer.empty ? '' : filled(answer.reply ?? '', captures);
  const calls = (answer.tool_calls ?? []).map(({ name, arguments: given }, index) => ({
    index,
    id: `call_${digest.slice(0, 8)}_${index + 1}`,
    type: 'function',
    function: { name, arguments: filled(JSON.stringify(given), captures) },
  }));
  const answered = calls.length === 0 ? text : text + JSON.stringify(calls);
  const { input_tokens: prompt_tokens, output_tokens: completion_tokens } = answer.usage ?? {
    input_tokens: approximateTokens(messages.map((message) => message.text).join('')),
    output_tokens: approximateTokens(answered),
  };
  return {
    head: { id: `chatcmpl-scripted-${digest.slice(0, 16)}`, created: 0, model, system_fingerprint: 'scripted' },
    text,
    calls,
    finishReason: calls.length > 0 ? 'tool_calls' : answer.finish_reason,
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  };
}

function completion({ head, text, calls, finishReason, usage }: ScriptedReply): object {
  const message = { role: 'assistant', content: text, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
  return { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finishReason }], usage };
}

/** Matches the text of one chunk of a stream. It never cuts within a character. */
const PIECE = /.{1,32}/gsu;

function streamEvents({ head, text, calls, finishReason, usage }: ScriptedReply, includeUsage: boolean): string {
  const event = (data: object) => `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...data })}\n\n`;
  const chunk = (delta: object, finish: string | null = null) => event({ choices: [{ index: 0, delta, finish_reason: finish }] });
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(text.match(PIECE) ?? []).map((content) => chunk({ content })),
    ...(calls.length === 0 ? [] : [chunk({ tool_calls: calls })]),
    chunk({}, finishReason),
    ...(includeUsage ? [event({ choices: [], usage })] : []),
    'data: [DONE]\n\n',
  ].join('');
}
