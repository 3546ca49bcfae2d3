import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/embedder';
import { z } from 'zod';
import { CachedEmbedder } from './cached-embedder.js';
import { OpenAiChatModel } from './openai-chat.js';
import type { OpenAiChatOptions } from './openai-chat.js';
import { OpenAiEmbedder } from './openai-embedder.js';

export const DEFAULT_BASE_URL = 'https://api.openai.com/v1';

const httpUrl = () => z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL, usually ending with /v1' });
const text = () =>
  z
    .string()
    .trim()
    .transform((value) => (value === '' ? undefined : value))
    .optional();
const usd = () => z.coerce.number().min(0, 'must be a price in US dollars per million tokens').default(0);
const milliseconds = (defaultMs: number) => z.coerce.number().int().min(1).max(86_400_000).default(defaultMs);
const fraction = () => z.coerce.number().min(0).max(1);

/** The slice of a service's settings that says which model it asks. `baseConfig.extend(modelConfig.shape)`. */
export const modelConfig = z.object({
  OPENAI_BASE_URL: httpUrl().default(DEFAULT_BASE_URL),
  OPENAI_API_KEY: text(),
  OPENAI_MODEL: text(),
  ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK: usd(),
  ETUDE_MODEL_PRICE_OUTPUT_USD_PER_MTOK: usd(),
  /** Calls under way at once, per process. */
  ETUDE_MODEL_CONCURRENCY: z.coerce.number().int().min(1).max(10_000).default(16),
  /** Calls in all for one answer, the first included. */
  ETUDE_MODEL_ATTEMPTS_MAX: z.coerce.number().int().min(1).max(100).default(6),
  /** All waiting between them together. */
  ETUDE_MODEL_WAIT_MAX_MS: z.coerce.number().int().min(0).max(86_400_000).default(120_000),
  ETUDE_MODEL_IDLE_TIMEOUT_MS: milliseconds(300_000),
  ETUDE_MODEL_CALL_TIMEOUT_MS: milliseconds(900_000),
  ETUDE_MODEL_ANSWER_MAX_BYTES: z.coerce.number().int().min(1_000).max(16_777_216).default(1_048_576),
  ETUDE_MODEL_PROXY_URL: httpUrl().optional(),
  /** Unset: the embedder that is built in. */
  ETUDE_EMBEDDING_MODEL: text(),
  ETUDE_EMBEDDING_DIMENSION: z.coerce.number().int().min(1).max(65_536).optional(),
  ETUDE_EMBEDDING_BASE_URL: httpUrl().optional(),
  ETUDE_EMBEDDING_API_KEY: text(),
  ETUDE_EMBEDDING_BATCH_SIZE: z.coerce.number().int().min(1).max(2_048).default(64),
  ETUDE_EMBEDDING_TEXT_MAX_CHARS: z.coerce.number().int().min(100).max(1_000_000).default(16_000),
  ETUDE_EMBEDDING_CACHE_ENTRIES: z.coerce.number().int().min(0).max(1_000_000).default(10_000),
  ETUDE_EMBEDDING_DENSE_WEIGHT: fraction().default(0.8),
  ETUDE_EMBEDDING_COSINE_SAME_TASK: fraction().default(0.55),
  ETUDE_EMBEDDING_COSINE_SAME_WORDS: fraction().default(0.8),
});
export type ModelConfig = z.infer<typeof modelConfig>;

/**
 * The chat model that the settings name. Opens no connection yet.
 *
 * @throws EtudeError FAILED_PRECONDITION when the default server is meant and its key or model is missing
 */
export function chatModelFrom(config: ModelConfig, options: Partial<OpenAiChatOptions> = {}): OpenAiChatModel {
  const { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey, OPENAI_MODEL: model } = config;
  if (baseUrl === DEFAULT_BASE_URL) {
    if (!apiKey)
      throw wrongSetting(
        'OPENAI_API_KEY',
        `is not set, and ${DEFAULT_BASE_URL} needs one; set it, or OPENAI_BASE_URL to another OpenAI-compatible server`,
      );
    if (!model) throw wrongSetting('OPENAI_MODEL', `is not set; set it to a model of ${DEFAULT_BASE_URL}`);
  }
  return new OpenAiChatModel({
    ...connectionOf(config),
    baseUrl,
    apiKey,
    model,
    priceInputUsdPerMtok: config.ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK,
    priceOutputUsdPerMtok: config.ETUDE_MODEL_PRICE_OUTPUT_USD_PER_MTOK,
    answerBytesMax: config.ETUDE_MODEL_ANSWER_MAX_BYTES,
    ...options,
  });
}

/**
 * The embedder that the settings name, with its cache; null when ETUDE_EMBEDDING_MODEL is unset.
 *
 * @throws EtudeError FAILED_PRECONDITION when its dimension or key is missing
 */
export function embedderFrom(config: ModelConfig): Embedder | null {
  const model = config.ETUDE_EMBEDDING_MODEL;
  if (!model) return null;
  const dimension = config.ETUDE_EMBEDDING_DIMENSION ?? DIMENSIONS[model];
  if (!dimension) throw wrongSetting('ETUDE_EMBEDDING_DIMENSION', `is not set; set it to the length of the vectors of ${model}`);
  if (config.ETUDE_EMBEDDING_COSINE_SAME_TASK >= config.ETUDE_EMBEDDING_COSINE_SAME_WORDS) {
    throw wrongSetting('ETUDE_EMBEDDING_COSINE_SAME_TASK', 'must be lower than ETUDE_EMBEDDING_COSINE_SAME_WORDS');
  }
  const baseUrl = config.ETUDE_EMBEDDING_BASE_URL ?? config.OPENAI_BASE_URL;
  // A key goes only to the server that it was given for.
  const apiKey = config.ETUDE_EMBEDDING_API_KEY ?? (baseUrl === config.OPENAI_BASE_URL ? config.OPENAI_API_KEY : undefined);
  if (baseUrl === DEFAULT_BASE_URL && !apiKey)
    throw wrongSetting('ETUDE_EMBEDDING_API_KEY', `is not set, and ${DEFAULT_BASE_URL} needs one`);
  const embedder = new OpenAiEmbedder({
    ...connectionOf(config),
    baseUrl,
    apiKey,
    model,
    dimension,
    batchSize: config.ETUDE_EMBEDDING_BATCH_SIZE,
    textCharsMax: config.ETUDE_EMBEDDING_TEXT_MAX_CHARS,
    denseWeight: config.ETUDE_EMBEDDING_DENSE_WEIGHT,
    cosineSameTask: config.ETUDE_EMBEDDING_COSINE_SAME_TASK,
    cosineSameWords: config.ETUDE_EMBEDDING_COSINE_SAME_WORDS,
    settings: { baseUrl: 'ETUDE_EMBEDDING_BASE_URL', apiKey: 'ETUDE_EMBEDDING_API_KEY', model: 'ETUDE_EMBEDDING_MODEL' },
  });
  return config.ETUDE_EMBEDDING_CACHE_ENTRIES > 0 ? new CachedEmbedder(embedder, config.ETUDE_EMBEDDING_CACHE_ENTRIES) : embedder;
}

/** Of models that everybody uses, so that nobody has to look it up. */
const DIMENSIONS: Readonly<Record<string, number>> = {
  'text-embedding-3-small': 1_536,
  'text-embedding-3-large': 3_072,
  'text-embedding-ada-002': 1_536,
};

function connectionOf(config: ModelConfig) {
  return {
    concurrency: config.ETUDE_MODEL_CONCURRENCY,
    limits: { idleTimeoutMs: config.ETUDE_MODEL_IDLE_TIMEOUT_MS, callTimeoutMs: config.ETUDE_MODEL_CALL_TIMEOUT_MS },
    retry: { attemptsMax: config.ETUDE_MODEL_ATTEMPTS_MAX, waitTotalMaxMs: config.ETUDE_MODEL_WAIT_MAX_MS },
    ...(config.ETUDE_MODEL_PROXY_URL ? { proxyUrl: config.ETUDE_MODEL_PROXY_URL } : {}),
  };
}

const wrongSetting = (field: string, description: string) =>
  new EtudeError('FAILED_PRECONDITION', `${field} ${description}.`, { violations: [{ field, description }] });
