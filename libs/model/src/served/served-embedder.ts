import { OpenAiEmbedder } from '../openai-embedder.js';
import type { RetryPolicy } from '../retry.js';
import { SENTENCE_PROFILE, TEXT_CHARS_MAX } from '../sentence/sentence-embedder.js';

/** The waits are longer in total than the launcher needs to restart the process. */
const PATIENCE: RetryPolicy = { attemptsMax: 1_000, waitTotalMaxMs: 20_000 };
/** The limits are high, because the process decides the order of calls and answers each of them in the end. */
const LIMITS = { idleTimeoutMs: 900_000, callTimeoutMs: 900_000 };
const CALLS_MAX = 1_000;

/** Uses the sentence model of an embedding process on this machine. If that process ends during a call, the call is repeated. */
export class ServedEmbedder extends OpenAiEmbedder {
  override readonly profile = SENTENCE_PROFILE;

  constructor(socketPath: string, retry = PATIENCE) {
    const { model, dimension } = SENTENCE_PROFILE;
    const settings = { baseUrl: 'ETUDE_EMBEDDER_SOCKET', apiKey: '', model: 'ETUDE_EMBEDDER' };
    const texts = { batchSize: Infinity, textCharsMax: TEXT_CHARS_MAX };
    super({
      baseUrl: 'http://embedder/v1',
      socketPath,
      model,
      dimension,
      ...texts,
      concurrency: CALLS_MAX,
      limits: LIMITS,
      retry,
      settings,
    });
  }
}
