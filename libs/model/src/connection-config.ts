import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';

export const DEFAULT_BASE_URL = 'https://api.openai.com/v1';

export const httpUrl = () => z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL, usually ending with /v1' });
export const text = () =>
  z
    .string()
    .trim()
    .transform((value) => (value === '' ? undefined : value))
    .optional();
const milliseconds = (defaultMs: number) => z.coerce.number().int().min(1).max(86_400_000).default(defaultMs);

/** Which server is asked, and how patiently: for chat and for embeddings. */
export const connectionConfig = z.object({
  OPENAI_BASE_URL: httpUrl().default(DEFAULT_BASE_URL),
  OPENAI_API_KEY: text(),
  /** Calls under way at once, per process. */
  ETUDE_MODEL_CONCURRENCY: z.coerce.number().int().min(1).max(10_000).default(16),
  /** Calls in all for one answer, the first included. */
  ETUDE_MODEL_ATTEMPTS_MAX: z.coerce.number().int().min(1).max(100).default(6),
  /** All waiting between them together. */
  ETUDE_MODEL_WAIT_MAX_MS: z.coerce.number().int().min(0).max(86_400_000).default(120_000),
  ETUDE_MODEL_IDLE_TIMEOUT_MS: milliseconds(300_000),
  ETUDE_MODEL_CALL_TIMEOUT_MS: milliseconds(900_000),
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

export const wrongSetting = (field: string, description: string) =>
  new EtudeError('FAILED_PRECONDITION', `${field} ${description}.`, { violations: [{ field, description }] });
