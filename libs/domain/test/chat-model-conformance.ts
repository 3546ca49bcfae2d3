import { errorCode, isAbort } from '@etude/contracts/errors';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ChatModel, ChatRequest } from '../src/ports/model.js';

/** The answer that the model under test must give to one prompt. No two prompts are equal, so a script can find the answer by the prompt. */
export interface ConformanceAnswer {
  readonly prompt: string;
  readonly text?: string;
  /** The answer stops at the limit of output tokens. */
  readonly cut?: boolean;
  /** The model refuses the request: MODEL_REFUSED. */
  readonly refused?: boolean;
  /** No answer comes until the call is aborted. */
  readonly hangs?: boolean;
}

export interface ModelUnderTest {
  readonly model: ChatModel;
  close?(): Promise<void>;
}

const never = () => new AbortController().signal;
const ask = (prompt: string, more: Partial<ChatRequest> = {}): ChatRequest => ({ messages: [{ role: 'user', content: prompt }], ...more });
/** The promises of every ChatModel, fake or real. `make` returns a model that gives these answers in this order. */
export function chatModelConformance(make: (answers: readonly ConformanceAnswer[]) => Promise<ModelUnderTest>): void {
  const start = async (...answers: ConformanceAnswer[]) => {
    const made = await make(answers);
    onTestFinished(async () => made.close?.());
    return made.model;
  };

  describe('as a ChatModel', () => {
    it('returns every character of the text', async () => {
      const text = 'Zeile eins\n\tdef f():\n    return "ünï \\\\ 😀 {{x}} </s>"\r\n```\n';
      const model = await start({ prompt: 'say it', text });
      const response = await model.chat(ask('say it'), never());
      expect(response).toMatchObject({ text, finishReason: 'stop' });
    });

    it('names the model and counts tokens and cost', async () => {
      const model = await start({ prompt: 'count please', text: 'one two three four' });
      const response = await model.chat(ask('count please'), never());
      expect(response.model).not.toBe('');
      expect(Number.isInteger(response.inputTokens) && response.inputTokens > 0).toBe(true);
      expect(Number.isInteger(response.outputTokens) && response.outputTokens > 0).toBe(true);
      expect(response.costUsd).toBeGreaterThanOrEqual(0);
      expect(typeof response.scripted).toBe('boolean');
    });

    it('reads the whole conversation', async () => {
      const model = await start({ prompt: 'and now?', text: 'It rains.' });
      const request: ChatRequest = {
        messages: [
          { role: 'system', content: 'You are brief.' },
          { role: 'user', content: 'how is the weather?' },
          { role: 'assistant', content: 'It is sunny.' },
          { role: 'user', content: 'and now?' },
        ],
        temperature: 0,
        outputTokensMax: 100,
      };
      expect((await model.chat(request, never())).text).toBe('It rains.');
    });

    it('reports an answer that was cut at the limit', async () => {
      const model = await start({ prompt: 'long', text: 'once upon', cut: true });
      expect(await model.chat(ask('long'), never())).toMatchObject({ text: 'once upon', finishReason: 'length' });
    });

    it('throws MODEL_REFUSED when the request is refused', async () => {
      const model = await start({ prompt: 'forbidden', refused: true });
      const error = await model.chat(ask('forbidden'), never()).catch((thrown: unknown) => thrown);
      expect(errorCode(error)).toBe('MODEL_REFUSED');
    });

    it('makes no call when aborted before', async () => {
      const model = await start({ prompt: 'later', text: 'still here' });
      const error = await model.chat(ask('later'), AbortSignal.abort()).catch((thrown: unknown) => thrown);
      expect(isAbort(error)).toBe(true);
      expect((await model.chat(ask('later'), never())).text).toBe('still here');
    });

    it('throws an AbortError when aborted during the call', async () => {
      const model = await start({ prompt: 'wait', hangs: true });
      const controller = new AbortController();
      const answer = model.chat(ask('wait'), controller.signal).catch((thrown: unknown) => thrown);
      setImmediate(() => controller.abort());
      expect(isAbort(await answer)).toBe(true);
    });

    it('gives concurrent calls their own answers', async () => {
      const prompts = Array.from({ length: 20 }, (_, i) => `question ${String.fromCharCode(97 + i)}`);
      const model = await start(...prompts.map((prompt) => ({ prompt, text: `answer to ${prompt}` })));
      const answers = await Promise.all(prompts.map((prompt) => model.chat(ask(prompt), never())));
      expect(answers.map((answer) => answer.text)).toEqual(prompts.map((prompt) => `answer to ${prompt}`));
    });
  });
}
