import { abortError, EtudeError } from '@etude/contracts/errors';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/model';
import { calibration } from '@etude/domain/retrieval/calibration';
import { type ConnectionOptions, OpenAiConnection, type Send } from './openai-connection.js';
import { readDocument, type ServerContext, serverName } from './server-answer.js';
import { z } from 'zod';

export interface OpenAiEmbedderOptions extends ConnectionOptions {
  readonly model: string;
  /** Length of the model's vectors. The stores check it. */
  readonly dimension: number;
  readonly batchSize: number;
  /** Longer texts are cut, because models would refuse them. */
  readonly textCharsMax: number;
}

/** This is a guess. The right weight differs from model to model. */
const DENSE_WEIGHT = 0.8;
const ANCHORS = { unrelated: 0.25, sameTask: 0.55, sameWords: 0.8 };

/** The longest answer that is read. For comparison: 64 vectors of 4,096 numbers take about 6 MiB. */
const ANSWER_CHARS_MAX = 64 * 1024 * 1024;

/** Gets vectors from any OpenAI-compatible server. It always requests floats. `retry.ts` does the retries. */
export class OpenAiEmbedder implements Embedder {
  readonly profile: EmbedderProfile;
  readonly #connection: OpenAiConnection;

  constructor(private readonly options: OpenAiEmbedderOptions) {
    const { model, dimension } = options;
    this.#connection = new OpenAiConnection(options);
    this.profile = { model, dimension, denseWeight: DENSE_WEIGHT, calibrate: calibration(ANCHORS) };
  }

  /** @throws EtudeError MODEL_*; an AbortError */
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
    // Servers refuse an empty text, so a space is sent instead.
    const input = texts.map((whole) => whole.slice(0, textCharsMax).toWellFormed() || ' ');
    const answer = await send('/embeddings', { model, input, encoding_format: 'float' });
    return readVectors(await answer.whole(ANSWER_CHARS_MAX), texts.length, this.#connection.context);
  }
}

const Vector = z.array(z.number()).transform((numbers) => Float32Array.from(numbers));
const Vectors = z.object({ data: z.array(z.object({ index: z.number().default(0), embedding: Vector })) });

/** Reads the vectors in the order of the texts. @throws EtudeError MODEL_ANSWER_TRUNCATED (retryable) if vectors are missing */
function readVectors(answer: string, expected: number, context: ServerContext): Float32Array[] {
  // Some servers give every vector the index 0, but send them in order.
  const vectors = readDocument(Vectors, answer, 'for embeddings', context).data.toSorted((a, b) => a.index - b.index);
  if (vectors.length === expected) return vectors.map(({ embedding }) => embedding);
  throw new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(context)} gave ${vectors.length} vectors for ${expected} texts.`);
}
