import { EtudeError } from '@etude/contracts/errors';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/embedder';
import { calibration } from '@etude/domain/retrieval/calibration';
import { type ConnectionOptions, type Exchange, OpenAiConnection } from './openai-connection.js';
import { faultError, faultIn, quoted, type ServerContext, serverName } from './server-errors.js';
import { abortError, parsedJson } from './http-client.js';

export interface OpenAiEmbedderOptions extends ConnectionOptions {
  readonly model: string;
  /** Length of its vectors; checked on every answer. */
  readonly dimension: number;
  /** Texts in one request. Default 64. */
  readonly batchSize?: number;
  /** Text beyond this is not embedded: models have a limit and refuse longer ones. Default 16,000. */
  readonly textCharsMax?: number;
}

/** A guess, as every model has its own: `etude memory calibrate` measures them. */
const DENSE_WEIGHT = 0.8;
const ANCHORS = { unrelated: 0.25, sameTask: 0.55, sameWords: 0.8 };

/** One answer: 64 vectors of 4,096 numbers written out take about 6 MiB. */
const ANSWER_CHARS_MAX = 64 * 1024 * 1024;

/** Embeddings of any OpenAI-compatible server, always asked for as floats. Retries: `retry.ts`. */
export class OpenAiEmbedder implements Embedder {
  readonly profile: EmbedderProfile;
  readonly #connection: OpenAiConnection;
  readonly #options: OpenAiEmbedderOptions;

  constructor(options: OpenAiEmbedderOptions) {
    const { model, dimension } = options;
    this.#options = options;
    this.#connection = new OpenAiConnection(options);
    this.profile = { model, dimension, denseWeight: DENSE_WEIGHT, calibrate: calibration(ANCHORS) };
  }

  /** @throws EtudeError EMBEDDING_LENGTH_WRONG when vectors have another length than said; MODEL_*; an AbortError */
  async embed(texts: readonly string[], signal: AbortSignal = new AbortController().signal): Promise<readonly Float32Array[]> {
    if (signal.aborted) throw abortError(signal);
    const { batchSize = 64 } = this.#options;
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += batchSize) {
      const batch = texts.slice(from, from + batchSize);
      vectors.push(...(await this.#connection.call((exchange) => this.#ask(batch, exchange), signal)));
    }
    return vectors;
  }

  /** Closes idle connections. */
  close(): void {
    this.#connection.close();
  }

  async #ask(texts: readonly string[], { client, watch }: Exchange): Promise<Float32Array[]> {
    const { model, textCharsMax = 16_000 } = this.#options;
    // Servers refuse the empty text; a space means as little.
    const input = texts.map((whole) => whole.slice(0, textCharsMax).toWellFormed() || ' ');
    const response = await client.embeddings.create({ model, input, encoding_format: 'float' }, { signal: watch.signal }).asResponse();
    let text = '';
    for await (const part of watch.textOf(response)) if ((text += part).length > ANSWER_CHARS_MAX) break;
    const vectors = readVectors(text, texts.length, this.#connection.context);
    vectors.forEach((vector) => this.#check(vector));
    return vectors;
  }

  #check(vector: Float32Array): void {
    const { model, dimension } = this.profile;
    const numbers = vector.reduce((sum, value) => sum + Number(Number.isFinite(value)), 0);
    if (vector.length === dimension && numbers === dimension) return;
    const got = vector.length === dimension ? `${numbers} finite numbers` : `${vector.length} numbers`;
    const { model: setting } = this.#connection.context.settings;
    throw new EtudeError(
      'EMBEDDING_LENGTH_WRONG',
      `${serverName(this.#connection.context)} gave a vector of ${got} for model ${model}, where ${dimension} were expected. ` +
        `Set ETUDE_EMBEDDING_DIMENSION to ${vector.length}, or ${setting} to the model that memory was made with.`,
    );
  }
}

interface Item {
  readonly index?: unknown;
  readonly embedding?: unknown;
}

/**
 * The vectors of an embeddings answer in the order of the texts.
 *
 * @throws EtudeError MODEL_ANSWER_TRUNCATED (retryable) when vectors are missing, MODEL_ANSWER_EMPTY when there is no answer
 */
export function readVectors(answer: string, expected: number, context: ServerContext): Float32Array[] {
  const items = itemsOf(answer, context);
  const vectors: Array<Float32Array | undefined> = Array.from({ length: expected });
  items.forEach((item, position) => {
    const index = typeof item.index === 'number' ? item.index : position;
    // A server that gives every vector the index 0 still gives them in order.
    vectors[vectors[index] === undefined ? index : position] = vectorOf(item.embedding);
  });
  const whole = vectors.slice(0, expected).filter((vector) => vector !== undefined);
  if (whole.length < expected) {
    throw new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} gave ${whole.length} vectors for ${expected} texts.`);
  }
  return whole;
}

function itemsOf(answer: string, context: ServerContext): Item[] {
  if (answer.trim() === '')
    throw new EtudeError('MODEL_ANSWER_EMPTY', `${serverName(context)} answered a request for embeddings with nothing.`);
  const body = parsedJson(answer);
  if (body === undefined) {
    throw new EtudeError(
      'MODEL_ANSWER_TRUNCATED',
      `${serverName(context)} answered a request for embeddings with what is no JSON: ${quoted(answer, context)}`,
    );
  }
  const { data, error } = (body ?? {}) as { data?: unknown; error?: unknown };
  if (error !== undefined && error !== null) throw faultError(faultIn(error), context);
  if (Array.isArray(data)) return data as Item[];
  throw new EtudeError(
    'MODEL_REFUSED',
    `${serverName(context)} answered a request for embeddings without \`data\`: ${quoted(answer, context)} Check ${context.settings.baseUrl}.`,
  );
}

/** Numbers, or little-endian floats in base64 from a server that gives nothing else. Text that is no number becomes NaN. */
function vectorOf(embedding: unknown): Float32Array | undefined {
  if (Array.isArray(embedding)) return Float32Array.from(embedding, (value) => (typeof value === 'number' ? value : Number.NaN));
  if (typeof embedding !== 'string') return undefined;
  const bytes = Buffer.from(embedding, 'base64');
  return Float32Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4));
}
