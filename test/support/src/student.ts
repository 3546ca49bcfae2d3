import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { readLessons, Student } from './student-answers.js';

export interface StudentCall {
  /** Kind of the request, such as "generate, with memories" or "consolidation". */
  readonly kind: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface RunningStudent {
  /** The value for OPENAI_BASE_URL. */
  readonly url: string;
  calls(): readonly StudentCall[];
  close(): Promise<void>;
}

const MODEL = 'scripted/student';
const CHARS_PER_TOKEN = 4;
const tokens = (text: string) => Math.ceil(text.length / CHARS_PER_TOKEN);

/**
 * Starts a model server that plays a student of these problem families. It knows every reference solution, but answers right only if the
 * prompt has what a student would need. No real model is called, and every answer is marked as scripted.
 *
 * @param path a file as `etude eval families` reads it
 */
export async function startStudent(path: string): Promise<RunningStudent> {
  const student = new Student(readLessons(readFileSync(path, 'utf8')));
  const calls: StudentCall[] = [];
  const server = createServer((request, response) => {
    serve(request, response).catch((error: Error) => send(response, 400, { error: { message: error.message } }));
  });
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return send(response, 200, { object: 'list', data: [{ id: MODEL, object: 'model' }] });
    const { messages } = (await json(request)) as { messages: readonly Message[] };
    chat(student, messages, calls, response);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls: () => [...calls],
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Message {
  readonly role: string;
  readonly content: string;
}

function chat(student: Student, messages: readonly Message[], calls: StudentCall[], response: ServerResponse): void {
  const [system, user] = ['system', 'user'].map((role) => messages.findLast((message) => message.role === role)?.content ?? '');
  const said = student.answer(system ?? '', user ?? '');
  if (said === null) return send(response, 404, { error: { message: `the student has no answer to: ${user?.slice(-200)}` } });
  const inputTokens = tokens(messages.map(({ content }) => content).join(''));
  const outputTokens = tokens(said.text);
  calls.push({ kind: said.kind, inputTokens, outputTokens });
  send(response, 200, {
    id: `student-${calls.length}`,
    object: 'chat.completion',
    created: 0,
    model: MODEL,
    system_fingerprint: 'scripted',
    choices: [{ index: 0, message: { role: 'assistant', content: said.text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens },
  });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-etude-scripted': '1' }).end(JSON.stringify(body));
}
