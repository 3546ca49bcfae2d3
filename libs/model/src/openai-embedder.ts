import { abortError, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/model';
import { calibration } from '@etude/domain/retrieval/calibration';
import { type ConnectionOptions, OpenAiConnection, type Send } from './openai-connection.js';
import { faultError, faultIn, quoted, type ServerContext, serverName } from './server-answer.js';
import { z } from 'zod';

export interface OpenAiEmbedderOptions extends ConnectionOptions {
  readonly model: string;
  /** Length of the model's vectors. It is checked for every answer. */
  readonly dimension: number;
  /** The most texts in one request. */
  readonly batchSize: number;
  /** Longer texts are cut, because models refuse them. */
  readonly textCharsMax: number;
}

/** A guess, since the right weight differs by model. */
const DENSE_WEIGHT = 0.8;
const ANCHORS = { unrelated: 0.25, sameTask: 0.55, sameWords: 0.8 };

/** The longest answer that is read. For comparison: 64 vectors of 4,096 numbers take about 6 MiB. */
const ANSWER_CHARS_MAX = 64 * 1024 * 1024;

/** Embeddings from any OpenAI-compatible server, always requested as floats. Retries: `retry.ts`. */
export class OpenAiEmbedder implements Embedder {
  readonly profile: EmbedderProfile;
  readonly #connection: OpenAiConnection;

  constructor(private readonly options: OpenAiEmbedderOptions) {
    const { model, dimension } = options;
    this.#connection = new OpenAiConnection(options);
    this.profile = { model, dimension, denseWeight: DENSE_WEIGHT, calibrate: calibration(ANCHORS) };
  }

  /** @throws EtudeError EMBEDDING_LENGTH_WRONG when vectors don't have the length `dimension`; MODEL_*; an AbortError */
  async embed(texts: readonly string[], signal: AbortSignal = new AbortController().signal): Promise<readonly Float32Array[]> {
    if (signal.aborted) throw abortError(signal);
    const vectors: Float32Array[] = [];
    for await (const batch of batchesOf(texts, { itemsMax: this.options.batchSize }))
      vectors.push(...(await this.#connection.call((send) => this.#ask(batch, send), signal)));
    return vectors;
  }

  close(): void {
    this.#connection.close();
  }

  async #ask(texts: readonly string[], send: Send): Promise<Float32Array[]> {
    const { model, textCharsMax } = this.options;
    // Servers refuse an empty text, so a space stands for it.
    const input = texts.map((whole) => whole.slice(0, textCharsMax).toWellFormed() || ' ');
    const answer = await send('/embeddings', { model, input, encoding_format: 'float' });
    const vectors = readVectors(await answer.whole(ANSWER_CHARS_MAX), texts.length, this.#connection.context);
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

/** Text that is no number becomes NaN. */
const Vector = z
  .array(z.unknown())
  .transform((values) => Float32Array.from(values, (value) => (typeof value === 'number' ? value : Number.NaN)));
const Item = z.object({ index: z.number().optional().catch(undefined), embedding: Vector.optional().catch(undefined) });
const Vectors = z.object({ data: z.array(Item) });

/**
 * Reads the vectors of an embeddings answer, in the order of the texts.
 *
 * @throws EtudeError MODEL_ANSWER_TRUNCATED (retryable) when vectors are missing, MODEL_ANSWER_EMPTY when there is no answer
 */
function readVectors(answer: string, expected: number, context: ServerContext): Float32Array[] {
  const vectors: Array<Float32Array | undefined> = Array.from({ length: expected });
  itemsOf(answer, context).forEach(({ index = NaN, embedding }, position) => {
    // Some servers give every vector the index 0, but send them in order.
    vectors[index < expected && vectors[index] === undefined ? index : position] = embedding;
  });
  const whole = vectors.slice(0, expected).filter((vector) => vector !== undefined);
  if (whole.length < expected) {
    throw new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} gave ${whole.length} vectors for ${expected} texts.`);
  }
  return whole;
}

function itemsOf(answer: string, context: ServerContext) {
  const said = `${serverName(context)} answered a request for embeddings`;
  if (answer.trim() === '') throw new EtudeError('MODEL_ANSWER_EMPTY', `${said} with an empty body.`);
  const body = parsedJson(answer);
  if (body === undefined) throw new EtudeError('MODEL_ANSWER_TRUNCATED', `${said} with text that is not JSON: ${quoted(answer, context)}`);
  const { error } = (body ?? {}) as { error?: unknown };
  if (error !== undefined && error !== null) throw faultError(faultIn(error), context);
  const read = Vectors.safeParse(body);
  if (read.success) return read.data.data;
  throw new EtudeError('MODEL_REFUSED', `${said} without \`data\`: ${quoted(answer, context)} Check ${context.settings.baseUrl}.`);
}
