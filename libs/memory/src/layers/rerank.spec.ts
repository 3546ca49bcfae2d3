import { EtudeError } from '@etude/contracts/errors';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';
import { expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { memoryOver } from '../open-memory.js';

const ALL = { tenant: 'acme', agent: null };

/** Hits of a search over three turns that asks for reranking. `rank` answers in place of the server. */
async function searched(rank: (texts: readonly string[]) => readonly number[]) {
  const seen: string[][] = [];
  const reranker = {
    rank: async (_query: string, texts: readonly string[]) => {
      seen.push([...texts]);
      return rank(texts);
    },
  };
  const memory = memoryOver(modelStore(), { embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR }, reranker });
  const messages = ['Which boat?', 'The red boat.', 'A fine boat!'].map((text) => ({ role: 'user', name: 'Ann', text, at: NEW_YEAR }));
  await memory.conversations.add({ scope: SCOPE, name: 'chat', title: '', messages, writeId: 'w1', first: null, at: NEW_YEAR });
  const search = (asks: boolean) => memory.semantic.search(ALL, { text: 'boat', limit: 3, rerank: asks, explain: true });
  return { plain: (await search(false)).map(({ text }) => text), hits: await search(true), seen };
}

it('follows the server, which reads a turn with its speaker, its day and the turns before it', async () => {
  const { hits, seen } = await searched((texts) => [texts.findIndex((text) => text.endsWith('The red boat.')), 99]);
  expect(hits[0]?.text).toBe('The red boat.');
  expect(hits.map(({ explanation }) => explanation?.['rerank'])).toEqual([1, 2, 3]);
  expect(seen).toHaveLength(1);
  expect(seen[0]).toContain('Ann: Which boat?\nAnn (1 January 2026): The red boat.');
});

it('keeps the order of the search if the server fails, and says so', async () => {
  const { hits, plain } = await searched(() => {
    throw new EtudeError('MODEL_UNAVAILABLE', 'away');
  });
  expect(hits.map(({ text }) => text)).toEqual(plain);
  expect(hits.every(({ explanation }) => explanation?.['rerankFailed'] === 1)).toBe(true);
});
