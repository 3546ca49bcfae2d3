import type { Embedder, EmbedderProfile } from '../ports/embedder.js';
import { through } from './calibration.js';
import { featuresOf } from './lexical-features.js';

const DIMENSION = 384;
/** Places per feature: two collisions at once are rare, so one place that is shared misleads less. */
const PLACES = 2;
/** Of a longer text, the beginning stands for the whole. */
const TEXT_CHARS_MAX = 16_000;

/** (raw cosine, calibrated), fitted on `libs/model/pairs/near-tasks.jsonl`. */
const ANCHORS: ReadonlyArray<readonly [number, number]> = [
  [0.15, 0],
  [0.5, 0.5],
  [0.6, 0.7],
  [0.68, 0.8],
  [0.85, 0.9],
  [1, 1],
];

/**
 * Texts to vectors by their words alone: offline, deterministic, nothing to download, 0.1 ms a text.
 *
 * Knows stems, identifiers and small typos. Does not know meaning: a paraphrase in other words stays unlike.
 */
export class LexicalEmbedder implements Embedder {
  readonly profile: EmbedderProfile = {
    model: 'lexical-hash-1',
    dimension: DIMENSION,
    denseWeight: 0.001,
    calibrate: calibrateLexical,
  };

  async embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    signal?.throwIfAborted();
    return texts.map((text) => vectorOf(text));
  }
}

/** Monotone, from -1..1 into 0..1, linear between the anchors. */
export const calibrateLexical = through(ANCHORS);

/** Of length 1; all zeros for a text without a word in it. */
function vectorOf(text: string): Float32Array {
  const vector = new Float32Array(DIMENSION);
  for (const [feature, weight] of featuresOf(text.slice(0, TEXT_CHARS_MAX))) {
    for (let place = 0; place < PLACES; place += 1) {
      const hash = hashOf(feature, place);
      const index = hash % DIMENSION;
      vector[index] = (vector[index] ?? 0) + (hash & 0x8000_0000 ? weight : -weight);
    }
  }
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** FNV-1a over the UTF-16 units, then mixed so that low bits depend on all. 32 bits, unsigned. */
function hashOf(text: string, seed: number): number {
  let hash = 0x811c_9dc5 ^ (seed * 0x9e37_79b1);
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
