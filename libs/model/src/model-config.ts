import { z } from 'zod';
import { connectionConfig, connectionOf, DEFAULT_BASE_URL, text, wrongSetting } from './connection-config.js';
import { embedderConfig } from './embedder-config.js';
import { OpenAiChatModel } from './openai-chat.js';
import type { OpenAiChatOptions } from './openai-chat.js';

const usd = () => z.coerce.number().min(0, 'must be a price in US dollars per million tokens').default(0);

/** The slice of a service's settings that says which model and which embedder it asks. `baseConfig.extend(modelConfig.shape)`. */
export const modelConfig = connectionConfig.extend(embedderConfig.shape).extend({
  OPENAI_MODEL: text(),
  ETUDE_MODEL_PRICE_INPUT_USD_PER_MTOK: usd(),
  ETUDE_MODEL_PRICE_OUTPUT_USD_PER_MTOK: usd(),
  ETUDE_MODEL_ANSWER_MAX_BYTES: z.coerce.number().int().min(1_000).max(16_777_216).default(1_048_576),
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
