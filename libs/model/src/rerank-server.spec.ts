import { expect, it } from 'vitest';
import { json, rawServer } from '../test/raw-server.js';
import { rerankConfig, rerankServerFrom } from './rerank-server.js';

const { signal } = new AbortController();
const serverAt = (url: string, more: object = {}) =>
  rerankServerFrom(rerankConfig.parse({ ETUDE_RERANK_BASE_URL: url, ETUDE_RERANK_MODEL: 'ranker', ...more }))!;
const resultsOf = (...scores: ReadonlyArray<readonly [number, number]>) =>
  json({ results: scores.map(([index, relevance_score]) => ({ index, relevance_score, document: { text: 'x' } })) });

it('sends query, texts, model and its own key, and orders by the scores', async () => {
  const server = await rawServer(resultsOf([0, 0.1], [2, 0.9], [1, 0.5]));
  expect(await serverAt(server.url, { ETUDE_RERANK_API_KEY: 'secret' }).rank('boats', ['a', 'b', 'c'], signal)).toEqual([2, 1, 0]);
  expect(server.requests).toMatchObject([
    {
      path: '/v1/rerank',
      headers: { authorization: 'Bearer secret' },
      body: { model: 'ranker', query: 'boats', documents: ['a', 'b', 'c'], top_n: 3 },
    },
  ]);
});

it.each([
  ['refuses', json({ error: { message: 'no such model' } }, 404), 'MODEL_REFUSED'],
  ['answers another shape', json({ data: [] }), 'MODEL_REFUSED'],
  ['is overloaded', json({ error: { message: 'later' } }, 503), 'MODEL_UNAVAILABLE'],
  ['is silent', () => undefined, 'MODEL_UNAVAILABLE'],
] as const)('fails at the first try if the server %s', async (_how, answer, code) => {
  const server = await rawServer(answer);
  const ranked = serverAt(server.url, { ETUDE_RERANK_TIMEOUT_MS: '200' }).rank('boats', ['a'], signal);
  await expect(ranked).rejects.toMatchObject({ code });
  expect(server.requests).toHaveLength(1);
});

it('is none without an address', () => {
  expect(rerankServerFrom(rerankConfig.parse({ ETUDE_RERANK_API_KEY: 'secret' }))).toBeNull();
});
