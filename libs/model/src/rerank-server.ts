import type { Reranker } from '@etude/domain/ports/model';
import { z } from 'zod';
import { connectionConfig, httpUrl, text } from './model-config.js';
import { OpenAiConnection } from './openai-connection.js';
import { readDocument } from './server-answer.js';

export const rerankConfig = connectionConfig.pick({ ETUDE_MODEL_CONCURRENCY: true, ETUDE_MODEL_PROXY_URL: true }).extend({
  /** Server with `POST /rerank`, for searches that ask for reranking. Unset: the chat model, if one is set. */
  ETUDE_RERANK_BASE_URL: httpUrl().optional(),
  /** Key of the reranking server. */
  ETUDE_RERANK_API_KEY: text(),
  /** Model of the reranking server. */
  ETUDE_RERANK_MODEL: text(),
  /** Longest time of one call. */
  ETUDE_RERANK_TIMEOUT_MS: z.coerce.number().int().min(1).max(600_000).default(5_000),
});
type RerankConfig = z.infer<typeof rerankConfig>;

export function rerankServerFrom(config: RerankConfig): Reranker | null {
  const { ETUDE_RERANK_BASE_URL: baseUrl, ETUDE_RERANK_API_KEY: apiKey, ETUDE_RERANK_MODEL: model } = config;
  if (baseUrl === undefined) return null;
  const timeoutMs = config.ETUDE_RERANK_TIMEOUT_MS;
  const connection = new OpenAiConnection({
    baseUrl,
    apiKey,
    concurrency: config.ETUDE_MODEL_CONCURRENCY,
    limits: { idleTimeoutMs: timeoutMs, callTimeoutMs: timeoutMs },
    // There is no retry, because a search is waiting.
    retry: { attemptsMax: 1, waitTotalMaxMs: 0 },
    settings: { baseUrl: 'ETUDE_RERANK_BASE_URL', apiKey: 'ETUDE_RERANK_API_KEY', model: 'ETUDE_RERANK_MODEL' },
    proxyUrl: config.ETUDE_MODEL_PROXY_URL,
  });
  return {
    async rank(query, texts, signal) {
      const documents = texts.map((one) => one.toWellFormed());
      const asked = { ...(model === undefined ? {} : { model }), query: query.toWellFormed(), documents, top_n: documents.length };
      const answer = await connection.call(async (send) => (await send('/rerank', asked)).whole(ANSWER_CHARS_MAX), signal);
      const { results } = readDocument(Results, answer, 'to rerank', connection.context);
      return results.toSorted((a, b) => b.relevance_score - a.relevance_score).map(({ index }) => index);
    },
  };
}

const ANSWER_CHARS_MAX = 1024 * 1024;
const Results = z.object({ results: z.array(z.object({ index: z.number().int(), relevance_score: z.number() })).min(1) });
