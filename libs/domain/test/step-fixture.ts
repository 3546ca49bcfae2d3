import type { ChatRequest, ChatResponse } from '../src/ports/model.js';
import type { FakeAnswer } from './fake-chat-model.js';

/** An answer that calls tools by the server's own function calling. */
export function calls(...called: ReadonlyArray<readonly [name: string, args: object]>): Partial<ChatResponse> {
  return {
    text: '',
    toolCalls: called.map(([name, args], at) => ({ id: `call-${at + 1}`, name, arguments: JSON.stringify(args) })),
  };
}

export const python = (code: string) => calls(['python', { code }]);
export const finalAnswer = (answer: string) => calls(['final_answer', { answer }]);

/** A model that answers step after step, whatever it is asked, and also when a step is asked for again. */
export const stepByStep =
  (answers: readonly FakeAnswer[]): FakeAnswer =>
  (request, signal) => {
    const answer = answers[stepOf(request) - 1];
    if (answer === undefined) throw new Error(`there is no answer for step ${stepOf(request)}`);
    return typeof answer === 'function' ? answer(request, signal) : answer;
  };

export const stepOf = ({ messages }: ChatRequest): number => Number(/Step (\d+) of/.exec(messages.at(-1)?.content ?? '')?.[1]);

/** All texts of a request as one. */
export const textOf = (request: ChatRequest | undefined): string => (request?.messages ?? []).map(({ content }) => content).join('\n');
