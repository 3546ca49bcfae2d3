import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel, Worker } from 'node:worker_threads';
import { abortError, EtudeError, unlessAborted } from '@etude/contracts/errors';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/model';
import { calibration } from '@etude/domain/retrieval/calibration';
import type { SentenceAnswer, SentenceCall, SentenceThreadData } from './sentence-thread.js';

/** Fitted by `etude memory calibrate` to the built-in pairs. docs/embeddings.md has the figures. */
const SENTENCE_ANCHORS = { unrelated: 0.32, sameTask: 0.493, sameWords: 0.933 };

export const SENTENCE_PROFILE: EmbedderProfile = {
  model: 'all-minilm-l6-v2',
  dimension: 384,
  denseWeight: 0.65,
  calibrate: calibration(SENTENCE_ANCHORS),
};

/** Longer texts are cut before they are tokenized, because tokenizing 10 MiB would take seconds. This length fills all windows. */
export const TEXT_CHARS_MAX = 16_000;

/** The folder into which `./etude` puts the model's files. */
export const DEFAULT_FOLDER = fileURLToPath(new URL('../../../../.etude/cache/embedder', import.meta.url));
/** The model's graph without its weights, written by `tools/embedding-graph`. */
const GRAPH_PATH = fileURLToPath(new URL('../../graphs/all-minilm-l6-v2.onnx', import.meta.url));

/** Names of the model's files that are missing in `folder` or have a wrong length. Digests are checked when files are fetched. */
export function missingFiles(folder: string): string[] {
  return SENTENCE_MODEL.files
    .filter(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size !== bytes)
    .map(({ name }) => name);
}

const { dimension: DIMENSION } = SENTENCE_PROFILE;

/** The thread's program: the source in tests, else the compiled file. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './sentence-thread.ts' : './sentence-thread.js', import.meta.url);

/**
 * Runs all-MiniLM-L6-v2 in this process, on its own thread, without any network. A text of more than 128 tokens gets the mean
 * of its first eight windows of 128 tokens.
 *
 * The first text loads the weights. The thread keeps the process alive only while it works.
 */
export class SentenceEmbedder implements Embedder {
  readonly profile = SENTENCE_PROFILE;
  readonly #data: SentenceThreadData;
  #thread: Worker | null = null;
  /** Resolves to the reason when the last thread has ended. */
  #ended: Promise<string> = Promise.resolve('');

  /** @param of.folder holds `model.safetensors` and `tokenizer.json` @param of.threads processor threads per run */
  constructor({ folder, threads = 1 }: { readonly folder: string; readonly threads?: number }) {
    this.#data = { folder, graph: GRAPH_PATH, threads };
  }

  /** @throws EtudeError MODEL_UNAVAILABLE if the model can't be loaded; an AbortError */
  async embed(texts: readonly string[], signal: AbortSignal = new AbortController().signal): Promise<readonly Float32Array[]> {
    if (signal.aborted) throw abortError(signal);
    if (texts.length === 0) return [];
    const flat = await this.#ask({ texts: texts.map((text) => text.slice(0, TEXT_CHARS_MAX)) }, signal);
    // Each vector is copied, because a view of it would keep all vectors of the call in memory.
    return texts.map((_, i) => flat.slice(i * DIMENSION, (i + 1) * DIMENSION));
  }

  /** Sends a call to the thread. Each call has its own channel. Closing the channel cancels the call. If the thread ends, the channel closes. */
  async #ask(call: Pick<SentenceCall, 'texts'>, signal: AbortSignal): Promise<Float32Array> {
    const thread = (this.#thread ??= this.#start());
    const { port1: ours, port2: port } = new MessageChannel();
    const answer = new Promise<SentenceAnswer | null>((resolve) => ours.once('message', resolve).once('close', () => resolve(null)));
    thread.postMessage({ ...call, port } satisfies SentenceCall, [port]);
    try {
      const said = await unlessAborted(answer, signal);
      if (said !== null && 'vectors' in said) return said.vectors;
      throw this.#unavailable(said?.error ?? (await this.#ended));
    } catch (error) {
      throw signal.aborted ? abortError(signal) : error;
    } finally {
      ours.close();
    }
  }

  #start(): Worker {
    const thread = new Worker(THREAD, { workerData: this.#data, resourceLimits: { maxYoungGenerationSizeMb: 8 } });
    thread.unref();
    this.#ended = new Promise((resolve) => {
      thread.once('error', (error) => resolve(error instanceof Error ? error.message : String(error)));
      thread.once('exit', (code) => {
        this.#thread = null;
        resolve(`its thread ended with ${code}`);
      });
    });
    return thread;
  }

  #unavailable(why: string): EtudeError {
    const wayOut = `Fetch its files again into ${this.#data.folder} with "etude embedder fetch --again", or set ETUDE_EMBEDDER=lexical for a new memory.`;
    return new EtudeError('MODEL_UNAVAILABLE', `The sentence model can't be used: ${why}. ${wayOut}`);
  }
}
