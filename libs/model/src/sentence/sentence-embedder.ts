import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { abortError, EtudeError } from '@etude/contracts/errors';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/model';
import { calibration } from '@etude/domain/retrieval/calibration';
import type { FromSentenceThread, SentenceThreadData, ToSentenceThread } from './sentence-thread.js';

/** Fitted by `etude memory calibrate` on the built-in pairs; docs/embeddings.md has the figures. */
const SENTENCE_ANCHORS = { unrelated: 0.32, sameTask: 0.493, sameWords: 0.933 };

export const SENTENCE_PROFILE: EmbedderProfile = {
  model: 'all-minilm-l6-v2',
  dimension: 384,
  denseWeight: 0.65,
  calibrate: calibration(SENTENCE_ANCHORS),
};

/** Longer texts are cut before they are tokenized. These characters fill all windows, and tokenizing 10 MiB would take seconds. */
export const TEXT_CHARS_MAX = 16_000;

/** Where `./etude` puts the model's files. */
export const DEFAULT_FOLDER = fileURLToPath(new URL('../../../../.etude/cache/embedder', import.meta.url));
/** The model's graph without its weights, written by `tools/embedding-graph`. */
export const GRAPH_PATH = fileURLToPath(new URL('../../graphs/all-minilm-l6-v2.onnx', import.meta.url));

/**
 * Names of the model's files that are missing in `folder` or have a wrong length.
 *
 * Digests are checked when the files are fetched, not here.
 */
export function missingFiles(folder: string): string[] {
  return SENTENCE_MODEL.files
    .filter(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size !== bytes)
    .map(({ name }) => name);
}

const { dimension: DIMENSION } = SENTENCE_PROFILE;

/** The thread's source in tests, else the compiled file. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './sentence-thread.ts' : './sentence-thread.js', import.meta.url);

/**
 * Runs all-MiniLM-L6-v2 in this process, on a thread of its own, without any network. A text of more than 128 tokens gets the mean
 * of its first eight windows of 128 tokens.
 *
 * The first text loads the weights. The thread keeps the process alive only while it works.
 */
export class SentenceEmbedder implements Embedder {
  readonly profile = SENTENCE_PROFILE;
  readonly #data: SentenceThreadData;
  readonly #waiting = new Map<number, PromiseWithResolvers<Float32Array>>();
  #thread: Worker | null = null;
  #lastId = 0;

  /**
   * @param of.folder holds `model.safetensors` and `tokenizer.json` of all-MiniLM-L6-v2
   * @param of.threads processor threads per run
   */
  constructor({ folder, threads = 1 }: { readonly folder: string; readonly threads?: number }) {
    this.#data = { folder, graph: GRAPH_PATH, threads };
  }

  /** @throws EtudeError MODEL_UNAVAILABLE where the model can't be loaded; an AbortError */
  async embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    if (signal?.aborted) throw abortError(signal);
    if (texts.length === 0) return [];
    const cut = texts.map((text) => text.slice(0, TEXT_CHARS_MAX));
    const flat = await this.#ask(cut, signal);
    // Copies, because a view of one vector would keep all vectors of the call in memory.
    return texts.map((_, i) => flat.slice(i * DIMENSION, (i + 1) * DIMENSION));
  }

  #ask(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array> {
    const thread = (this.#thread ??= this.#start());
    const id = (this.#lastId += 1);
    const post = (message: ToSentenceThread) => thread.postMessage(message, []);
    const giveUp = () => {
      post({ cancel: id });
      this.#settled(id)?.reject(abortError(signal as AbortSignal));
    };
    const waiting = Promise.withResolvers<Float32Array>();
    this.#waiting.set(id, waiting);
    signal?.addEventListener('abort', giveUp, { once: true });
    thread.ref();
    post({ id, texts });
    return waiting.promise.finally(() => signal?.removeEventListener('abort', giveUp));
  }

  #start(): Worker {
    const thread = new Worker(THREAD, { workerData: this.#data, resourceLimits: { maxYoungGenerationSizeMb: 8 } });
    const died = (why: string) => this.#thread === thread && this.#failed(why);
    thread.on('message', (message: FromSentenceThread) => {
      const waiting = this.#settled(message.id);
      if ('vectors' in message) waiting?.resolve(message.vectors);
      else waiting?.reject(this.#unavailable(message.error));
    });
    thread.on('error', (error) => died(error instanceof Error ? error.message : String(error)));
    thread.on('exit', (code) => died(`its thread ended with ${code}`));
    return thread;
  }

  #settled(id: number): PromiseWithResolvers<Float32Array> | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#thread?.unref();
    return waiting;
  }

  #failed(why: string): void {
    this.#thread = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(this.#unavailable(why));
  }

  #unavailable(why: string): EtudeError {
    const wayOut = `Fetch its files again into ${this.#data.folder} with "etude embedder fetch --again", or set ETUDE_EMBEDDER=lexical for a new memory.`;
    return new EtudeError('MODEL_UNAVAILABLE', `The sentence model can't be used: ${why}. ${wayOut}`);
  }
}
