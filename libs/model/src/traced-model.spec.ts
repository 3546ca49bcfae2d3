import type { SpanStart, SpanValues, Tracing } from '@etude/contracts/tracing';
import { expect, it } from 'vitest';
import { traced, tracedEmbedder } from './traced-model.js';

const ANSWER = {
  text: 'Hi.',
  model: 'm-2026',
  scripted: false,
  finishReason: 'stop' as const,
  inputTokens: 12,
  outputTokens: 3,
  costUsd: 0.5,
};

/** Tracing that records start, values and content of its last span. */
function recorded() {
  const seen = { name: '', start: {} as SpanStart, values: {}, content: {} };
  const tracing: Tracing = {
    current: undefined,
    span(name, start, work) {
      Object.assign(seen, { name, start });
      const add = (to: 'values' | 'content', values: SpanValues) => void Object.assign(seen[to], values);
      return work({ set: (values) => add('values', values), setContent: (values) => add('content', values()) });
    },
  };
  return { seen, tracing };
}

async function spanOf(answer: object) {
  const { seen, tracing } = recorded();
  const server = new URL('http://models.test:8000/v1');
  const model = traced({ chat: async () => ({ ...ANSWER, ...answer }) }, tracing, { server, model: 'm' });
  const account = { tenant: 'acme', agent: 'solver', purpose: 'generate' };
  await model.chat({ messages: [{ role: 'user', content: 'Hello' }], outputTokensMax: 100, account }, new AbortController().signal);
  return seen;
}

it('describes a call by the conventions for GenAI', async () => {
  const { name, start, values } = await spanOf({});
  expect(name).toBe('chat m');
  expect(start).toEqual({
    kind: 'client',
    values: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'm',
      'gen_ai.request.max_tokens': 100,
      'gen_ai.agent.name': 'solver',
      'server.address': 'models.test',
      'server.port': 8000,
      'etude.tenant': 'acme',
      'etude.purpose': 'generate',
    },
  });
  expect(values).toEqual({
    'gen_ai.response.model': 'm-2026',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 12,
    'gen_ai.usage.output_tokens': 3,
    'etude.cost_usd': 0.5,
  });
});

it('gives messages as content only, with the calls of tools', async () => {
  const toolCalls = [{ id: 'c1', name: 'fs_list', arguments: '{}' }];
  const { content, values } = await spanOf({ toolCalls });
  expect(values).toMatchObject({ 'gen_ai.response.finish_reasons': ['tool_call'] });
  expect(Object.entries(content).map(([name, text]) => [name, JSON.parse(text as string) as unknown])).toEqual([
    ['gen_ai.input.messages', [{ role: 'user', parts: [{ type: 'text', content: 'Hello' }] }]],
    [
      'gen_ai.output.messages',
      [
        {
          role: 'assistant',
          parts: [
            { type: 'text', content: 'Hi.' },
            { type: 'tool_call', id: 'c1', name: 'fs_list', arguments: '{}' },
          ],
          finish_reason: 'tool_call',
        },
      ],
    ],
  ]);
});

it('describes a call to an embedding server by the same conventions', async () => {
  const { seen, tracing } = recorded();
  const profile = { model: 'e', dimension: 2, denseWeight: 0.5, calibrate: (cosine: number) => cosine };
  const inner = { profile, embed: async (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 0)) };
  const embedder = tracedEmbedder(inner, tracing, { server: new URL('https://models.test/v1'), model: 'e' });
  expect(await embedder.embed(['tea'])).toEqual([Float32Array.of(1, 0)]);
  expect(seen).toMatchObject({
    name: 'embeddings e',
    start: {
      kind: 'client',
      values: {
        'gen_ai.operation.name': 'embeddings',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'e',
        'server.address': 'models.test',
      },
    },
  });
});
