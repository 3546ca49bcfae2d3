import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from '@huggingface/tokenizers';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/**
 * The thread of a SentenceEmbedder: onnxruntime-node runs a graph on the thread that asks it, for 40 ms and more. Imports nothing
 * of this package, since tests run it as the source that it is.
 */
export interface SentenceThreadData {
  readonly folder: string;
  readonly graph: string;
  readonly threads: number;
}
export type ToSentenceThread = { readonly id: number; readonly texts: readonly string[] } | { readonly cancel: number } | 'close';
export type FromSentenceThread =
  /** One vector after the other, each of length 1. */
  { readonly id: number; readonly vectors: Float32Array } | { readonly id: number; readonly error: string };

/** A row of a batch: the tokens of one text, or of a window of a longer one. */
interface Row {
  readonly place: number;
  readonly ids: readonly number[];
}
interface Call {
  readonly texts: readonly string[];
  readonly vectors: Float32Array;
  readonly rows: Row[];
  /** Texts before this one have become rows. */
  next: number;
}
type Encode = (text: string) => ReadonlyArray<readonly number[]>;

const DIMENSION = 384;
/** The model was trained on texts of up to this many tokens, its two marks included. */
const TOKENS_MAX = 256;
/** A longer text is the mean of its first windows: what stands late in it is found as well (docs/embeddings.md has the figures). */
const WINDOWS_MAX = 4;
/** More is never needed for so many tokens, and a text of 10 MiB would take seconds to cut into words. */
const TEXT_CHARS_MAX = 16_000;
/** Of a batch with its padding: what a run needs in memory, and how long a question waits for it, go by this. */
const BATCH_TOKENS_MAX = 256;
/** Texts that are cut into tokens at once, so that batches are of like lengths and a long call lets others through. */
const TEXTS_AT_ONCE = 256;
/** The same, of their characters together; one text at least. */
const CHARS_AT_ONCE = 64_000;
/** A text of this many characters is about one run of the model. */
const SHORT_CHARS_MAX = 1_000;
/** What BERT's vocabulary calls [CLS] and [SEP]. */
const [START, END] = [101, 102];

async function loadSession({ folder, graph, threads }: SentenceThreadData): Promise<InferenceSession> {
  return InferenceSession.create(readFileSync(graph), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    extra: { session: { model_external_initializers_file_folder_path: folder } },
  });
}

/** Its file says to pad and to cut at 128; neither is done by this library, and both are done here. */
function loadEncode({ folder }: SentenceThreadData): Encode {
  const tokenizer = new Tokenizer(JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8')) as object, {});
  return (text) => {
    const whole = text.slice(0, TEXT_CHARS_MAX).toWellFormed();
    const { ids } = tokenizer.encode(whole, { add_special_tokens: false });
    const room = TOKENS_MAX - 2;
    const windows = Math.min(WINDOWS_MAX, Math.max(1, Math.ceil(ids.length / room)));
    return Array.from({ length: windows }, (_, i) => [START, ...ids.slice(i * room, (i + 1) * room), END]);
  };
}

/** The longest rows that are left, as many as fit. */
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
  const fit = ahead.findIndex((text) => (chars += Math.min(text.length, TEXT_CHARS_MAX)) > CHARS_AT_ONCE);
  return fit === -1 ? ahead : ahead.slice(0, Math.max(1, fit));
}

/** One batch of a call. @returns whether the call is done */
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

/** Whether somebody waits for an answer to it: a question is one short text. */
export function isUrgent(texts: readonly string[]): boolean {
  return texts.length === 1 && (texts[0] ?? '').length <= SHORT_CHARS_MAX;
}

/** Whose batch is run next: the first urgent call, else the one whose turn is longest ago, which goes behind the others. */
export function takeTurn<T extends { readonly texts: readonly string[] }>(calls: Map<number, T>): readonly [number, T] | undefined {
  const turn = [...calls].find(([, { texts }]) => isUrgent(texts)) ?? [...calls][0];
  if (turn === undefined) return undefined;
  calls.delete(turn[0]);
  calls.set(...turn);
  return turn;
}

/** Calls take turns, a batch each: a question waits for one batch at most, not for a whole import. */
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
    // Lets messages in: new calls, and those that are given up.
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

/** Tests are threads as well, some of them. */
const data = workerData as Partial<SentenceThreadData> | null;
if (parentPort && data?.graph) await serve(parentPort, data as SentenceThreadData);
