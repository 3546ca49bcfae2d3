import { EtudeError } from '@etude/contracts/errors';
import type { MemoryHit } from '@etude/domain/ports/memory';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { ALL } from '@etude/domain/testing/memory-conformance-start';
import { NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';
import { expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { type MemoryDeps, memoryOver } from '../open-memory.js';

/** Hits of a search over three turns that asks for reranking, and of a search that doesn't. */
async function searched(deps: Pick<MemoryDeps, 'reranker' | 'chatModel'>, explain = true) {
  const memory = memoryOver(modelStore(), { embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR }, ...deps });
  const messages = ['Which boat?', 'The red boat.', 'A fine boat!'].map((text) => ({ role: 'user', name: 'Ann', text, at: NEW_YEAR }));
  await memory.conversations.add({ scope: SCOPE, name: 'chat', title: '', messages, writeId: 'w1', first: null, at: NEW_YEAR });
  const search = (asks: boolean) => memory.semantic.search(ALL, { text: 'boat', limit: 3, rerank: asks, explain });
  return { plain: await search(false), hits: await search(true) };
}

const textsOf = (hits: readonly MemoryHit[]) => hits.map(({ text }) => text);

it('follows the server, which reads a turn with its speaker, its day and the turns before it', async () => {
  const seen: string[][] = [];
  const rank = async (_query: string, texts: readonly string[]) => {
    seen.push([...texts]);
    return [texts.findIndex((text) => text.endsWith('The red boat.')), 99];
  };
  const { hits } = await searched({ reranker: { rank } });
  expect(hits[0]?.text).toBe('The red boat.');
  expect(hits.map(({ explanation }) => explanation?.['rerank'])).toEqual([1, 2, 3]);
  expect(seen).toEqual([expect.arrayContaining(['Ann: Which boat?\nAnn (1 January 2026): The red boat.'])]);
});

it('follows the order of the model, and keeps hits that the model left out', async () => {
  const chatModel = new FakeChatModel([
    ({ messages }) => {
      const { results } = JSON.parse(messages.at(-1)?.content ?? '') as { results: Array<{ id: number; text: string }> };
      return `Sure: {"order": [${results.find(({ text }) => text.includes('red'))?.id}, 77, 1.0, -1]}`;
    },
  ]);
  const { hits, plain } = await searched({ chatModel });
  expect(hits[0]?.text).toBe('The red boat.');
  expect(textsOf(hits).toSorted()).toEqual(textsOf(plain).toSorted());
  expect(hits.map(({ explanation }) => explanation?.['rerank'])).toEqual([1, 2, 3]);
});

const away = new EtudeError('MODEL_UNAVAILABLE', 'away');

it.each([
  ['the server fails', { reranker: { rank: () => Promise.reject(away) } }],
  ['the model fails', { chatModel: new FakeChatModel([away]) }],
  ['the model answers no JSON', { chatModel: new FakeChatModel(['the second one']) }],
  ['the model answers another shape', { chatModel: new FakeChatModel(['{"order": "2"}']) }],
  ['there is no model', {}],
])('keeps the order of the search if %s, and says so', async (_, deps) => {
  const { hits, plain } = await searched(deps, false);
  expect(textsOf(hits)).toEqual(textsOf(plain));
  expect(hits.every(({ explanation }) => explanation?.['rerankFailed'] === 1)).toBe(true);
});
