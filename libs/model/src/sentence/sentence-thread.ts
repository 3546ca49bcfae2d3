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
export interface SentenceCall {
  readonly texts: readonly string[];
  /** Takes the answer. The call is given up when it closes. */
  readonly port: MessagePort;
}
/** The vectors of all texts in one array, each of length 1. */
export type SentenceAnswer = { readonly vectors: Float32Array } | { readonly error: string };

interface Call extends SentenceCall {
  readonly vectors: Float32Array;
  /** Index of the text whose windows run, and those that haven't run yet; null before its first. */
  at: number;
  windows: Window[] | null;
}
/** Token ids of a text, or of a part of a longer one. */
type Window = readonly number[];
type Encode = (text: string) => Window[];

const DIMENSION = 384;
/** The most tokens of one window, [CLS] and [SEP] included: the model was trained on no more. It bounds how long an urgent call waits. */
const TOKENS_MAX = 128;
/** A longer text gets the mean of this many windows, so that later parts count too (docs/embeddings.md has the figures). */
const WINDOWS_MAX = 8;
/** The most characters of an urgent text; they take two runs of the model. */
const SHORT_CHARS_MAX = 1_000;
/** The tokens [CLS] and [SEP] of BERT's vocabulary. */
const [START, END] = [101, 102];

async function loadSession({ folder, graph, threads }: SentenceThreadData): Promise<InferenceSession> {
  return InferenceSession.create(readFileSync(graph), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Threads that spin while they wait take a processor away from everything else.
    extra: { session: { model_external_initializers_file_folder_path: folder, intra_op: { allow_spinning: '0' } } },
  });
}

/** Loads the tokenizer. This library ignores the padding and the cut in its file; windows are cut here instead. */
function loadEncode({ folder }: SentenceThreadData): Encode {
  const tokenizer = new Tokenizer(JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8')) as object, {});
  return (text) => {
    const { ids } = tokenizer.encode(text.toWellFormed(), { add_special_tokens: false });
    const room = TOKENS_MAX - 2;
    const windows = Math.min(WINDOWS_MAX, Math.max(1, Math.ceil(ids.length / room)));
    return Array.from({ length: windows }, (_, i) => [START, ...ids.slice(i * room, (i + 1) * room), END]);
  };
}

/** Runs one window of a call. @returns whether the call is done */
async function advance(call: Call, session: InferenceSession, encode: Encode): Promise<boolean> {
  const windows = (call.windows ??= encode(call.texts[call.at] ?? ''));
  const ids = windows.shift() ?? [];
  const input = new Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]);
  const made = (await session.run({ input_ids: input })).sentence_embedding?.data as Float32Array;
  const vector = call.vectors.subarray(call.at * DIMENSION, (call.at + 1) * DIMENSION);
  for (const [i, value] of made.entries()) vector[i] = (vector[i] ?? 0) + ids.length * value;
  if (windows.length > 0) return false;
  const length = Math.hypot(...vector);
  for (const [i, value] of vector.entries()) vector[i] = value / length;
  call.windows = null;
  call.at += 1;
  return call.at === call.texts.length;
}

/** Whether a call is urgent. A query is one short text, and somebody waits for its result. */
export function isUrgent(texts: readonly string[]): boolean {
  return texts.length === 1 && (texts[0] ?? '').length <= SHORT_CHARS_MAX;
}

/** Takes the call whose window runs next, and moves it behind the others. It is the first urgent call, else the one that waited longest. */
export function takeTurn<T extends Pick<SentenceCall, 'texts'>>(calls: Set<T>): T | undefined {
  const turn = [...calls].find(({ texts }) => isUrgent(texts)) ?? [...calls][0];
  if (turn === undefined) return undefined;
  calls.delete(turn);
  calls.add(turn);
  return turn;
}

/** Runs the calls in turns of one window, so that an urgent call waits for at most one window, not for a whole import. */
async function serve(port: MessagePort, data: SentenceThreadData): Promise<void> {
  const calls = new Set<Call>();
  const arrivals = new EventEmitter();
  port.on('message', (asked: SentenceCall) => {
    const call = { ...asked, vectors: new Float32Array(asked.texts.length * DIMENSION), at: 0, windows: null };
    calls.add(call);
    asked.port.once('close', () => calls.delete(call));
    arrivals.emit('call');
  });
  const encode = loadEncode(data);
  const session = await loadSession(data);
  const answer = async (call: Call) => {
    try {
      if (!(await advance(call, session, encode))) return;
      call.port.postMessage({ vectors: call.vectors } satisfies SentenceAnswer, [call.vectors.buffer as ArrayBuffer]);
    } catch (error) {
      call.port.postMessage({ error: error instanceof Error ? error.message : String(error) } satisfies SentenceAnswer, []);
    }
    calls.delete(call);
  };
  for (;;) {
    const turn = takeTurn(calls);
    if (turn === undefined) await once(arrivals, 'call');
    else await answer(turn);
    // Lets messages arrive: new calls, and the ends of channels.
    await new Promise(setImmediate);
  }
}

/** Some tests are threads too, but without this data. */
const data = workerData as Partial<SentenceThreadData> | null;
if (parentPort && data?.graph) await serve(parentPort, data as SentenceThreadData);
