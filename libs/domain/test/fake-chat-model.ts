import type { ChatModel, ChatRequest, ChatResponse } from '../src/ports/model.js';

type Computed = string | Partial<ChatResponse> | Error;

/** A text, parts of a response, an error to throw, or a function of the request that gives one of these. */
export type FakeAnswer = Computed | ((request: ChatRequest, signal: AbortSignal) => Computed | Promise<Computed>);

/** Gives no answer until the call is aborted. */
export const neverAnswers = (_request: ChatRequest, signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(aborted()), { once: true });
  });

/**
 * Answers from a list, in the order of the calls, and keeps every request.
 *
 * @throws Error, which names the request, if the list is empty because the test makes more calls than it declared.
 * The number of tokens is the number of characters / 4, unless an answer gives it. Every response is marked as scripted.
 */
export class FakeChatModel implements ChatModel {
  readonly requests: ChatRequest[] = [];
  readonly #answers: FakeAnswer[];

  constructor(answers: readonly FakeAnswer[]) {
    this.#answers = [...answers];
  }

  async chat(request: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
    if (signal.aborted) throw aborted();
    const { onText, ...kept } = request;
    this.requests.push(structuredClone(kept));
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error(`the fake model has no answer left for call ${this.requests.length}: ${lastText(request)}`);
    const computed = typeof answer === 'function' ? await answer(request, signal) : answer;
    if (signal.aborted) throw aborted();
    if (computed instanceof Error) throw computed;
    const response = responseOf(request, typeof computed === 'string' ? { text: computed } : computed);
    onText?.(response.text);
    return response;
  }
}

function responseOf(request: ChatRequest, given: Partial<ChatResponse>): ChatResponse {
  const text = given.text ?? '';
  return {
    text,
    finishReason: 'stop',
    model: 'fake',
    scripted: true,
    inputTokens: tokens(request.messages.map((message) => message.content).join('')),
    outputTokens: tokens(text),
    costUsd: 0,
    ...given,
  };
}

const tokens = (text: string) => Math.ceil(text.length / 4);
const lastText = (request: ChatRequest) => JSON.stringify((request.messages.at(-1)?.content ?? '').slice(0, 200));

function aborted(): Error {
  return new DOMException('the call of the model was aborted', 'AbortError');
}
