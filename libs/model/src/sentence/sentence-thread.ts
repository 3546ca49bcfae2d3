import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from '@huggingface/tokenizers';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/**
 * The thread of a SentenceEmbedder. It exists because onnxruntime-node blocks the calling thread for 40 ms and more. It imports nothing
 * of this package, since tests run its source.
 */
export interface SentenceThreadData {
  readonly folder: string;
  readonly graph: string;
  readonly threads: number;
}
export type ToSentenceThread = { readonly id: number; readonly texts: readonly string[] } | { readonly cancel: number } | 'close';
export type FromSentenceThread =
  /** The vectors of all texts in one array, each of length 1. */
  { readonly id: number; readonly vectors: Float32Array } | { readonly id: number; readonly error: string };

/** A row of a batch: the tokens of one text, or of one window of a longer text. */
interface Row {
  readonly place: number;
  readonly ids: readonly number[];
}
interface Call {
  readonly texts: readonly string[];
  readonly vectors: Float32Array;
  readonly rows: Row[];
  /** Index of the first text that is not cut into rows yet. */
  next: number;
}
type Encode = (text: string) => ReadonlyArray<readonly number[]>;

const DIMENSION = 384;
/** The most tokens of one row, [CLS] and [SEP] included: the model was trained on no more. */
const TOKENS_MAX = 256;
/** A longer text gets the mean of this many windows, so that later parts count too (docs/embeddings.md has the figures). */
const WINDOWS_MAX = 4;
/** The most tokens of a batch, padding included. It decides how much memory a run needs and how long an urgent call waits for it. */
const BATCH_TOKENS_MAX = 256;
/** The most texts tokenized at once: enough to batch texts of similar length, and few enough to let other calls through. */
const TEXTS_AT_ONCE = 256;
/** The most characters tokenized at once, but at least one text. */
const CHARS_AT_ONCE = 64_000;
/** The most characters of an urgent text; they take about one run of the model. */
const SHORT_CHARS_MAX = 1_000;
/** The tokens [CLS] and [SEP] of BERT's vocabulary. */
const [START, END] = [101, 102];

async function loadSession({ folder, graph, threads }: SentenceThreadData): Promise<InferenceSession> {
  return InferenceSession.create(readFileSync(graph), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    extra: { session: { model_external_initializers_file_folder_path: folder } },
  });
}

/** Loads the tokenizer. This library ignores the padding and the cut at 128 tokens in its file; rows are cut and padded here instead. */
function loadEncode({ folder }: SentenceThreadData): Encode {
  const tokenizer = new Tokenizer(JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8')) as object, {});
  return (text) => {
    const { ids } = tokenizer.encode(text.toWellFormed(), { add_special_tokens: false });
    const room = TOKENS_MAX - 2;
    const windows = Math.min(WINDOWS_MAX, Math.max(1, Math.ceil(ids.length / room)));
    return Array.from({ length: windows }, (_, i) => [START, ...ids.slice(i * room, (i + 1) * room), END]);
  };
}

/** Takes the longest remaining rows, as many as fit into a batch. */
function takeBatch(rows: Row[]): Row[] {
  const longest = rows.at(-1)?.ids.length ?? 1;
  return rows.splice(-Math.max(1, Math.floor(BATCH_TOKENS_MAX / longest)));
}

function feeds(batch: readonly Row[]): Record<string, Tensor> {
  const tokens = Math.max(...batch.map(({ ids }) => ids.length));
  const ids = new BigInt64Array(batch.length * tokens);
  const mask = new BigInt64Array(batch.length * tokens);
  for (const [i, row] of batch.entries()) {
    row.ids.forEach((id, j) => (ids[i * tokens + j] = BigInt(id)));
    mask.fill(1n, i * tokens, i * tokens + row.ids.length);
  }
  const dims = [batch.length, tokens];
  return { input_ids: new Tensor('int64', ids, dims), attention_mask: new Tensor('int64', mask, dims) };
}

function nextTexts({ texts, next }: Call): readonly string[] {
  let chars = 0;
  const ahead = texts.slice(next, next + TEXTS_AT_ONCE);
  const fit = ahead.findIndex((text) => (chars += text.length) > CHARS_AT_ONCE);
  return fit === -1 ? ahead : ahead.slice(0, Math.max(1, fit));
}

/** Runs one batch of a call. @returns whether the call is done */
async function advance(call: Call, session: InferenceSession, encode: Encode): Promise<boolean> {
  if (call.rows.length === 0) {
    const texts = nextTexts(call);
    call.rows.push(...texts.flatMap((text, i) => encode(text).map((ids) => ({ place: call.next + i, ids }))));
    call.rows.sort((a, b) => a.ids.length - b.ids.length);
    call.next += texts.length;
  }
  const batch = takeBatch(call.rows);
  const { sentence_embedding: embedding } = await session.run(feeds(batch));
  const made = embedding?.data as Float32Array;
  for (const [i, { place, ids }] of batch.entries()) {
    for (let at = 0; at < DIMENSION; at += 1) {
      const sum = call.vectors[place * DIMENSION + at] ?? 0;
      call.vectors[place * DIMENSION + at] = sum + ids.length * (made[i * DIMENSION + at] ?? 0);
    }
  }
  if (call.rows.length > 0 || call.next < call.texts.length) return false;
  call.texts.forEach((_, i) => toLengthOne(call.vectors.subarray(i * DIMENSION, (i + 1) * DIMENSION)));
  return true;
}

function toLengthOne(vector: Float32Array): void {
  const length = Math.hypot(...vector);
  for (const [i, value] of vector.entries()) vector[i] = value / length;
}

/** Whether a call is urgent. A query is one short text, and somebody waits for its result. */
export function isUrgent(texts: readonly string[]): boolean {
  return texts.length === 1 && (texts[0] ?? '').length <= SHORT_CHARS_MAX;
}

/** Takes the call whose batch runs next, and moves it behind the others. It is the first urgent call, else the one that waited longest. */
export function takeTurn<T extends { readonly texts: readonly string[] }>(calls: Map<number, T>): readonly [number, T] | undefined {
  const turn = [...calls].find(([, { texts }]) => isUrgent(texts)) ?? [...calls][0];
  if (turn === undefined) return undefined;
  calls.delete(turn[0]);
  calls.set(...turn);
  return turn;
}

/** Runs the calls in turns of one batch, so that an urgent call waits for at most one batch, not for a whole import. */
async function serve(port: MessagePort, data: SentenceThreadData): Promise<void> {
  const calls = new Map<number, Call>();
  const arrivals = new EventEmitter();
  const closing = new AbortController();
  port.on('message', (message: ToSentenceThread) => {
    if (message === 'close') {
      closing.abort();
      port.close();
      return arrivals.emit('call');
    }
    if ('cancel' in message) return calls.delete(message.cancel);
    const { id, texts } = message;
    calls.set(id, { texts, vectors: new Float32Array(texts.length * DIMENSION), rows: [], next: 0 });
    return arrivals.emit('call');
  });
  const encode = loadEncode(data);
  const session = await loadSession(data);
  while (!closing.signal.aborted) {
    const turn = takeTurn(calls);
    if (turn === undefined) await once(arrivals, 'call');
    else await answer(turn, { port, calls, session, encode });
    // Lets messages arrive: new calls and cancels.
    await new Promise(setImmediate);
  }
}

interface Desk {
  readonly port: MessagePort;
  readonly calls: Map<number, Call>;
  readonly session: InferenceSession;
  readonly encode: Encode;
}

async function answer([id, call]: readonly [number, Call], { port, calls, session, encode }: Desk): Promise<void> {
  try {
    if (!(await advance(call, session, encode))) return;
    port.postMessage({ id, vectors: call.vectors } satisfies FromSentenceThread, [call.vectors.buffer as ArrayBuffer]);
  } catch (error) {
    port.postMessage({ id, error: error instanceof Error ? error.message : String(error) } satisfies FromSentenceThread);
  }
  calls.delete(id);
}

/** Some tests are threads too, but without this data. */
const data = workerData as Partial<SentenceThreadData> | null;
if (parentPort && data?.graph) await serve(parentPort, data as SentenceThreadData);
