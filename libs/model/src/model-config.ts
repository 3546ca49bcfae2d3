import { EtudeError } from '@etude/contracts/errors';
import type { ChatModel, Embedder, EmbedderProfile } from '@etude/domain/ports/model';
import { areAnchors, calibration, type CosineAnchors } from '@etude/domain/retrieval/calibration';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { z } from 'zod';
import { CachedEmbedder } from './cached-embedder.js';
import { OpenAiChatModel } from './openai-chat.js';
import { OpenAiEmbedder } from './openai-embedder.js';
import { DEFAULT_FOLDER, missingFiles, SentenceEmbedder } from './sentence/sentence-embedder.js';
import { ServedEmbedder } from './served/served-embedder.js';
import { traced, tracedEmbedder } from './traced-model.js';

export const DEFAULT_BASE_URL = 'https://api.openai.com/v1';

export const httpUrl = () => z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL, usually ending with /v1' });
export const text = () =>
  z
    .string()
    .trim()
    .transform((value) => (value === '' ? undefined : value))
    .optional();
const milliseconds = (defaultMs: number) => z.coerce.number().int().min(1).max(86_400_000).default(defaultMs);

/** The settings of the model server, for chat and for embeddings. */
export const connectionConfig = z.object({
  /** Address of the model server, including `/v1`. */
  OPENAI_BASE_URL: httpUrl().default(DEFAULT_BASE_URL),
  /** Key of the model server. Required for the default server. Unset: no `Authorization` header is sent. */
  OPENAI_API_KEY: text(),
  /** Most concurrent calls of the model server, per process. */
  ETUDE_MODEL_CONCURRENCY: z.coerce.number().int().min(1).max(10_000).default(16),
  /** Most calls to get one answer. If answers are empty or truncated, there are at most 3. */
  ETUDE_MODEL_ATTEMPTS_MAX: z.coerce.number().int().min(1).max(100).default(6),
  /** Longest total wait, in ms, between the calls for one answer. */
  ETUDE_MODEL_WAIT_MAX_MS: z.coerce.number().int().min(0).max(86_400_000).default(120_000),
  /** Longest time, in ms, without data from the model server. Raise it for a slow server that does not stream. */
  ETUDE_MODEL_IDLE_TIMEOUT_MS: milliseconds(300_000),
  /** Longest time of one call. */
  ETUDE_MODEL_CALL_TIMEOUT_MS: milliseconds(900_000),
  /** HTTP proxy for all calls of model servers. `HTTP_PROXY` and similar variables are not read. */
  ETUDE_MODEL_PROXY_URL: httpUrl().optional(),
});

export function connectionOf(config: z.infer<typeof connectionConfig>) {
  return {
    concurrency: config.ETUDE_MODEL_CONCURRENCY,
    limits: { idleTimeoutMs: config.ETUDE_MODEL_IDLE_TIMEOUT_MS, callTimeoutMs: config.ETUDE_MODEL_CALL_TIMEOUT_MS },
    retry: { attemptsMax: config.ETUDE_MODEL_ATTEMPTS_MAX, waitTotalMaxMs: config.ETUDE_MODEL_WAIT_MAX_MS },
    ...(config.ETUDE_MODEL_PROXY_URL ? { proxyUrl: config.ETUDE_MODEL_PROXY_URL } : {}),
  };
}

const wrongSetting = (field: string, description: string) =>
  new EtudeError('FAILED_PRECONDITION', `${field} ${description}.`, { violations: [{ field, description }] });

const fraction = () => z.coerce.number().min(0).max(1).optional();

/** The settings of a service's embedder. All services that use one memory need the same settings. */
export const embedderConfig = connectionConfig.extend({
  /** Built-in embedder. `auto` means `sentence` if its files exist, else `lexical`. Ignored if ETUDE_EMBEDDING_MODEL is set. */
  ETUDE_EMBEDDER: z.enum(['auto', 'sentence', 'lexical']).default('auto'),
  /** Folder of the sentence model. Unset: `.etude/cache/embedder` in the checkout. */
  ETUDE_EMBEDDER_PATH: text(),
  /** Socket of a process that holds the sentence model for this machine. Unset: this process loads it. */
  ETUDE_EMBEDDER_SOCKET: text(),
  /** Processor threads of the sentence model, per process. */
  ETUDE_EMBEDDER_THREADS: z.coerce.number().int().min(1).max(64).default(1),
  /** Embedding model of an OpenAI-compatible server. Unset: a built-in embedder. */
  ETUDE_EMBEDDING_MODEL: text(),
  /** Length of the vectors. It is known for OpenAI's models and may then be unset. */
  ETUDE_EMBEDDING_DIMENSION: z.coerce.number().int().min(1).max(65_536).optional(),
  /** Server of the embedding model. Unset: `OPENAI_BASE_URL`. */
  ETUDE_EMBEDDING_BASE_URL: httpUrl().optional(),
  /** Key of the embedding server. Unset: `OPENAI_API_KEY` if the server is the same. */
  ETUDE_EMBEDDING_API_KEY: text(),
  /** Most texts in one request to the embedding server. */
  ETUDE_EMBEDDING_BATCH_SIZE: z.coerce.number().int().min(1).max(2_048).default(64),
  /** Most characters of a text that are embedded. The rest of a longer text is ignored. */
  ETUDE_EMBEDDING_TEXT_MAX_CHARS: z.coerce.number().int().min(100).max(1_000_000).default(16_000),
  /** Size of a process's cache of vectors. 0: no cache. */
  ETUDE_EMBEDDING_CACHE_MAX_BYTES: z.coerce.number().int().min(0).max(17_179_869_184).default(33_554_432),
  /** Weight of similar meaning in search, 0 to 1. Equal words have the rest. Unset: the embedder's own value. */
  ETUDE_EMBEDDING_DENSE_WEIGHT: fraction(),
  /** Cosine below which 95 of 100 pairs of unrelated texts lie. It is shown as similarity 0.3. Unset: the embedder's own value. */
  ETUDE_EMBEDDING_COSINE_UNRELATED: fraction(),
  /** Cosine that means "probably the same task". It is shown as similarity 0.7. */
  ETUDE_EMBEDDING_COSINE_SAME_TASK: fraction(),
  /** Cosine that means "nearly the same words". It is shown as similarity 0.9. */
  ETUDE_EMBEDDING_COSINE_SAME_WORDS: fraction(),
});
export type EmbedderConfig = z.infer<typeof embedderConfig>;
type Notes = { readonly warn?: (message: string) => void; readonly tracing?: Tracing };

/**
 * Makes the embedder that the settings choose, with its cache. Every service gets its embedder here.
 *
 * ETUDE_EMBEDDING_MODEL takes precedence over ETUDE_EMBEDDER. An embedder behind a socket gets no cache here, because the embedding process
 * has one cache for all clients. No connection is opened and no weights are loaded yet.
 * @param notes.warn called once if `auto` chooses the lexical embedder because files of the sentence model are missing
 * @throws EtudeError FAILED_PRECONDITION if a file, a dimension or a key is missing, or if the cosine anchors don't rise
 */
export async function embedderFrom(config: EmbedderConfig, notes: Notes = {}): Promise<Embedder> {
  const inner = await chosen(config, notes);
  const embedder = withProfile(inner, config);
  const { ETUDE_EMBEDDING_CACHE_MAX_BYTES: bytesMax } = config;
  return bytesMax > 0 && !(inner instanceof ServedEmbedder) ? new CachedEmbedder(embedder, bytesMax) : embedder;
}

async function chosen(config: EmbedderConfig, { warn, tracing = UNTRACED }: Notes): Promise<Embedder> {
  if (config.ETUDE_EMBEDDING_MODEL) return openAiEmbedder(config, config.ETUDE_EMBEDDING_MODEL, tracing);
  if (config.ETUDE_EMBEDDER === 'lexical') return new LexicalEmbedder();
  if (config.ETUDE_EMBEDDER_SOCKET !== undefined) return new ServedEmbedder(config.ETUDE_EMBEDDER_SOCKET);
  const folder = config.ETUDE_EMBEDDER_PATH ?? DEFAULT_FOLDER;
  const missing = missingFiles(folder);
  if (missing.length === 0) return new SentenceEmbedder({ folder, threads: config.ETUDE_EMBEDDER_THREADS });
  const what = `${missing.join(', ')} of the sentence model ${missing.length === 1 ? 'is' : 'are'} not in ${folder}`;
  if (config.ETUDE_EMBEDDER === 'sentence')
    throw wrongSetting('ETUDE_EMBEDDER', `is "sentence", but ${what}. Run "etude embedder fetch", or set it to "lexical"`);
  warn?.(
    `${what}: memory search compares words only, and misses requests in other words. Run "etude embedder fetch" to fetch these files.`,
  );
  return new LexicalEmbedder();
}

function openAiEmbedder(config: EmbedderConfig, model: string, tracing: Tracing): Embedder {
  const dimension = config.ETUDE_EMBEDDING_DIMENSION ?? DIMENSIONS[model];
  if (!dimension) throw wrongSetting('ETUDE_EMBEDDING_DIMENSION', `is not set. Set it to the length of the vectors of ${model}`);
  const baseUrl = config.ETUDE_EMBEDDING_BASE_URL ?? config.OPENAI_BASE_URL;
  // The chat model's key must not be sent to another server.
  const apiKey = config.ETUDE_EMBEDDING_API_KEY ?? (baseUrl === config.OPENAI_BASE_URL ? config.OPENAI_API_KEY : undefined);
  if (baseUrl === DEFAULT_BASE_URL && !apiKey)
    throw wrongSetting('ETUDE_EMBEDDING_API_KEY', `is not set, but ${DEFAULT_BASE_URL} requires a key`);
  const embedder = new OpenAiEmbedder({
    ...connectionOf(config),
    baseUrl,
    apiKey,
    model,
    dimension,
    batchSize: config.ETUDE_EMBEDDING_BATCH_SIZE,
    textCharsMax: config.ETUDE_EMBEDDING_TEXT_MAX_CHARS,
    settings: { baseUrl: 'ETUDE_EMBEDDING_BASE_URL', apiKey: 'ETUDE_EMBEDDING_API_KEY', model: 'ETUDE_EMBEDDING_MODEL' },
  });
  return tracedEmbedder(embedder, tracing, { server: new URL(baseUrl), model });
}

/** Vector lengths of common models. For these, ETUDE_EMBEDDING_DIMENSION needn't be set. */
const DIMENSIONS: Readonly<Record<string, number>> = {
  'text-embedding-3-small': 1_536,
  'text-embedding-3-large': 3_072,
  'text-embedding-ada-002': 1_536,
};

function withProfile(embedder: Embedder, config: EmbedderConfig): Embedder {
  const anchors = anchorsOf(config);
  const { ETUDE_EMBEDDING_DENSE_WEIGHT: denseWeight } = config;
  if (!anchors && denseWeight === undefined) return embedder;
  const profile: EmbedderProfile = {
    ...embedder.profile,
    ...(denseWeight === undefined ? {} : { denseWeight }),
    ...(anchors ? { calibrate: calibration(anchors) } : {}),
  };
  return { profile, embed: (texts, signal) => embedder.embed(texts, signal) };
}

function anchorsOf(config: EmbedderConfig): CosineAnchors | null {
  const { ETUDE_EMBEDDING_COSINE_UNRELATED: unrelated } = config;
  const { ETUDE_EMBEDDING_COSINE_SAME_TASK: sameTask, ETUDE_EMBEDDING_COSINE_SAME_WORDS: sameWords } = config;
  if (unrelated === undefined && sameTask === undefined && sameWords === undefined) return null;
  const anchors = { unrelated: unrelated ?? Number.NaN, sameTask: sameTask ?? Number.NaN, sameWords: sameWords ?? Number.NaN };
  if (areAnchors(anchors)) return anchors;
  throw wrongSetting(
    'ETUDE_EMBEDDING_COSINE_SAME_TASK',
    'must lie between ETUDE_EMBEDDING_COSINE_UNRELATED and ETUDE_EMBEDDING_COSINE_SAME_WORDS. Set all three',
  );
}

const usd = () => z.coerce.number().min(0, 'must be a price in US dollars per million tokens').default(0);

/** The settings of a service's chat model and embedder. Use `baseConfig.extend(modelConfig.shape)`. */
export const modelConfig = connectionConfig.extend(embedderConfig.shape).extend({
  /** Model to ask. Required for the default server. Unset for another server: the first model of `GET /models`, or `default`. */
  OPENAI_MODEL: text(),
  /** Price of a million input tokens, for `usage.cost_usd` and the limit on cost. */
  ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK: usd(),
  /** Price of a million output tokens. */
  ETUDE_MODEL_PRICE_OUTPUT_USD_PER_MTOK: usd(),
  /** Most bytes of a model's answer. A longer answer is cut off. */
  ETUDE_MODEL_ANSWER_MAX_BYTES: z.coerce.number().int().min(1_000).max(16_777_216).default(1_048_576),
});
type ModelConfig = z.infer<typeof modelConfig>;

/** Makes the chat model that the settings choose. It connects later. @throws EtudeError FAILED_PRECONDITION if a needed key or model isn't set */
export function chatModelFrom(config: ModelConfig, tracing = UNTRACED): ChatModel {
  const { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey, OPENAI_MODEL: model } = config;
  if (baseUrl === DEFAULT_BASE_URL) {
    if (!apiKey)
      throw wrongSetting(
        'OPENAI_API_KEY',
        `is not set, but ${DEFAULT_BASE_URL} requires a key. Set it, or set OPENAI_BASE_URL to another OpenAI-compatible server`,
      );
    if (!model) throw wrongSetting('OPENAI_MODEL', `is not set. Set it to a model of ${DEFAULT_BASE_URL}`);
  }
  const chat = new OpenAiChatModel({
    ...connectionOf(config),
    baseUrl,
    apiKey,
    model,
    priceInputUsdPerMtok: config.ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK,
    priceOutputUsdPerMtok: config.ETUDE_MODEL_PRICE_OUTPUT_USD_PER_MTOK,
    answerBytesMax: config.ETUDE_MODEL_ANSWER_MAX_BYTES,
  });
  return traced(chat, tracing, { server: new URL(baseUrl), model });
}
