import type { Embedder, EmbedderProfile } from '../ports/embedder.js';
import { through } from './calibration.js';
import { featuresOf } from './lexical-features.js';

const DIMENSION = 384;
/** How many places of the vector a feature is added to. Two features rarely collide in both, so one shared place misleads less. */
const PLACES = 2;
/** Only the beginning of a longer text is embedded. */
const TEXT_CHARS_MAX = 16_000;

/** Pairs of (raw cosine, calibrated), fitted on `libs/model/pairs/near-tasks.jsonl`. */
const ANCHORS: ReadonlyArray<readonly [number, number]> = [
  [0.15, 0],
  [0.5, 0.5],
  [0.6, 0.7],
  [0.68, 0.8],
  [0.85, 0.9],
  [1, 1],
];

/**
 * Embeds texts by their words alone: offline, deterministic, without a download, 0.1 ms a text.
 *
 * It matches stems, identifiers and small typos. It does not know meaning: a paraphrase in other words stays dissimilar.
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

export const calibrateLexical = through(ANCHORS);

/** A vector of length 1; all zeros for a text without words. */
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

/** FNV-1a over UTF-16 units, then mixed so that the low bits depend on all others. 32 bits, unsigned. */
function hashOf(text: string, seed: number): number {
  let hash = 0x811c_9dc5 ^ (seed * 0x9e37_79b1);
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
