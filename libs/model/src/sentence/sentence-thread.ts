import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from '@huggingface/tokenizers';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/** Settings of a SentenceEmbedder's own thread, which onnxruntime-node blocks. Tests run this source, so it imports nothing of this package. */
export interface SentenceThreadData {
  readonly folder: string;
  readonly graph: string;
  readonly threads: number;
}
export interface SentenceCall {
  readonly texts: readonly string[];
  /** The answer is sent to this port. If the port closes, the call is cancelled. */
  readonly port: MessagePort;
}
/** The vectors of all texts in one array, each of length 1. */
export type SentenceAnswer = { readonly vectors: Float32Array } | { readonly error: string };

interface Call extends SentenceCall {
  readonly vectors: Float32Array;
  /** Index of the present text, and its windows that haven't run yet. null if no window has run. */
  at: number;
  windows: Window[] | null;
}
/** Token ids of a text, or of a part of a longer text. */
type Window = readonly number[];
type Encode = (text: string) => Window[];

const DIMENSION = 384;
/** The most tokens of one window, with [CLS] and [SEP]. The model was trained with this limit. It also limits an urgent call's wait. */
const TOKENS_MAX = 128;
/** A longer text gets the mean of this many windows, so that its later parts count too. docs/embeddings.md has the figures. */
const WINDOWS_MAX = 8;
/** The most characters of an urgent text. They take two runs of the model. */
const SHORT_CHARS_MAX = 1_000;
/** The tokens [CLS] and [SEP] of BERT. */
const [START, END] = [101, 102];

async function loadSession({ folder, graph, threads }: SentenceThreadData): Promise<InferenceSession> {
  return InferenceSession.create(readFileSync(graph), {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Threads that spin while they wait would take a processor away from all other work.
    extra: { session: { model_external_initializers_file_folder_path: folder, intra_op: { allow_spinning: '0' } } },
  });
}

/** Loads the tokenizer. The library ignores the padding and the length limit in the file, so windows are cut here. */
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

/** Chooses the call whose window runs next: the first urgent call, else the call that waited longest. Moves that call behind the others. */
export function takeTurn<T extends Pick<SentenceCall, 'texts'>>(calls: Set<T>): T | undefined {
  const turn = [...calls].find(({ texts }) => isUrgent(texts)) ?? [...calls][0];
  if (turn === undefined) return undefined;
  calls.delete(turn);
  calls.add(turn);
  return turn;
}

/** Runs one window of a call at a time, so that an urgent call waits for at most one window and not for a whole import. */
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
    // Lets new calls and closed channels arrive.
    await new Promise(setImmediate);
  }
}

/** Tests may run this file in a thread that has no such data. */
const data = workerData as Partial<SentenceThreadData> | null;
if (parentPort && data?.graph) await serve(parentPort, data as SentenceThreadData);
