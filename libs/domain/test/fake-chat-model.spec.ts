import { EtudeError } from '@etude/contracts/errors';
import { describe, expect, it } from 'vitest';
import { chatModelConformance } from './chat-model-conformance.js';
import type { ConformanceAnswer } from './chat-model-conformance.js';
import { FakeChatModel, neverAnswers } from './fake-chat-model.js';
import type { FakeAnswer } from './fake-chat-model.js';

function fakeAnswer({ text = '', toolCalls = [], cut, refused, hangs }: ConformanceAnswer): FakeAnswer {
  if (refused) return new EtudeError('MODEL_REFUSED', 'the model refuses this');
  if (hangs) return neverAnswers;
  return {
    text,
    toolCalls: toolCalls.map((call, i) => ({ id: `call_${i}`, ...call })),
    ...(cut ? { finishReason: 'length' as const } : {}),
  };
}

const ask = (content: string) => ({ messages: [{ role: 'user' as const, content }] });

describe('FakeChatModel', () => {
  chatModelConformance(async (answers) => ({ model: new FakeChatModel(answers.map(fakeAnswer)) }));

  it('throws when the script runs out', async () => {
    const model = new FakeChatModel(['only one']);
    await model.chat(ask('first'), new AbortController().signal);
    await expect(model.chat(ask('second'), new AbortController().signal)).rejects.toThrow('no answer left for call 2: "second"');
  });

  it('keeps every request as it was when asked', async () => {
    const model = new FakeChatModel(['a', (request) => `heard ${request.messages[0]?.content}`]);
    const messages = [{ role: 'user' as const, content: 'one' }];
    await model.chat({ messages }, new AbortController().signal);
    messages[0] = { role: 'user', content: 'two' };
    const response = await model.chat({ messages }, new AbortController().signal);
    expect(response.text).toBe('heard two');
    expect(model.requests.map((request) => request.messages[0]?.content)).toEqual(['one', 'two']);
    expect(model.remaining).toBe(0);
  });
});
