import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { connectionConfig, connectionOf } from '../src/model-config.js';
import { OpenAiChatModel, type OpenAiChatOptions } from '../src/openai-chat.js';

export interface RawRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

type Answer = (response: ServerResponse, request: RawRequest) => void;

/** A server that answers each request with the next function. The last function answers all further requests. It ends with the test. */
export async function rawServer(...answers: Answer[]) {
  const requests: RawRequest[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const seen = { path: request.url ?? '', headers: request.headers, body: text === '' ? {} : JSON.parse(text) };
      requests.push(seen);
      answers[Math.min(requests.length, answers.length) - 1]?.(response, seen);
    });
  });
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests, connections: () => connections };
}

/** Timers that record each wait and don't wait. */
export function impatient() {
  const waits: number[] = [];
  return { waits, timers: { sleep: async (ms: number) => void waits.push(Math.round(ms)), random: () => 1 } };
}

/** The connection with the default settings. */
export const CONNECTION = connectionOf(connectionConfig.parse({}));

interface ChatOptions extends Partial<Omit<OpenAiChatOptions, 'limits' | 'retry'>> {
  readonly limits?: Partial<OpenAiChatOptions['limits']>;
  readonly retry?: Partial<OpenAiChatOptions['retry']>;
}

export function chatModel(baseUrl: string, { limits, retry, ...options }: ChatOptions = {}): OpenAiChatModel {
  const model = new OpenAiChatModel({
    ...CONNECTION,
    baseUrl,
    model: 'm',
    priceInputUsdPerMtok: 0,
    priceOutputUsdPerMtok: 0,
    answerBytesMax: 1_048_576,
    timers: impatient().timers,
    ...options,
    limits: { ...CONNECTION.limits, ...limits },
    retry: { ...CONNECTION.retry, ...retry },
  });
  onTestFinished(() => model.close());
  return model;
}

/** Asks a model at this server once. */
export const answerFrom = (baseUrl: string, options?: ChatOptions) => chatModel(baseUrl, options).chat(ask(), never());

export const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it answered'),
    (error: { code: string; message: string }) => error,
  );

export const never = (): AbortSignal => new AbortController().signal;
export const ask = (content = 'hello') => ({ messages: [{ role: 'user' as const, content }] });

export const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
  };

/** Sends the text and ends the answer. */
export const raw =
  (text: string, headers: Record<string, string> = { 'content-type': 'text/event-stream' }): Answer =>
  (response) => {
    response.writeHead(200, headers).end(text);
  };

/** Sends the text and then breaks the connection. */
export const broken =
  (text: string, headers: Record<string, string> = { 'content-type': 'text/event-stream' }): Answer =>
  (response) => {
    response.writeHead(200, headers);
    response.write(text, () => response.destroy());
  };

export const whole = (content: unknown, more: object = {}) => ({ choices: [{ message: { role: 'assistant', content }, ...more }] });
export const delta = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: finish }] })}\n\n`;
