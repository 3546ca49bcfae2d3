import type { Embedder, EmbedderProfile } from '../ports/model.js';
import { through } from './calibration.js';
import { STOP_WORDS, type Word, wordsOf } from './words.js';

const DIMENSION = 384;
/** A feature is added to this many components of the vector. Two features rarely share both components, so collisions have less effect. */
const PLACES = 2;
const TEXT_CHARS_MAX = 16_000;

/** Pairs of raw and calibrated cosine, fitted to `libs/model/pairs/near-tasks.jsonl`. */
const ANCHORS: ReadonlyArray<readonly [number, number]> = [
  [0.15, 0],
  [0.5, 0.5],
  [0.6, 0.7],
  [0.68, 0.8],
  [0.85, 0.9],
  [1, 1],
];

/**
 * Embeds texts by their words alone. It works offline, gives the same vector each time, needs no download and takes 0.1 ms for a text.
 * It matches stems, identifiers and small typos. It doesn't know meanings, so a paraphrase in other words is not similar.
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

/** The vector of a text, of length 1. A text without words gets the zero vector. */
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

/** An unsigned hash of 32 bits: FNV-1a over UTF-16 units, then mixed, so that the low bits depend on all other bits. */
function hashOf(text: string, seed: number): number {
  let hash = 0x811c_9dc5 ^ (seed * 0x9e37_79b1);
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

const CONTENT_WEIGHT = 1;
const ROUTINE_WEIGHT = 0.3;
const NAME_WEIGHT = 0.35;
const NUMBER_WEIGHT = 0.15;
const STOP_WEIGHT = 0.08;
const NEIGHBOURS_WEIGHT = 0.3;
const GRAMS_WEIGHT = 0.4;
const GRAM_CHARS = 3;

/** Words that occur in most programming tasks, whatever the topic of the task is. */
const ROUTINE_WORDS: ReadonlySet<string> = new Set(
  wordsOf(
    [
      'write implement create define complete function method program script code python given give take takes accept',
      'return returns print output input argument parameter value values list array number numbers integer int string str',
      'called named using use following example please task problem solution answer result should must read line standard',
      'one two three four five first second third nth th st nd rd',
    ].join(' '),
  ).map((word) => word.text),
);

const ARGUMENTS = /[\p{L}\p{N}_]\(([\p{L}\p{N}_,:= \t]*)\)/gu;

/** The weighted features of a text: stemmed words, pairs of neighbouring content words, and character trigrams. */
function featuresOf(text: string): Map<string, number> {
  const words = withArgumentsAsNames(text);
  const features = new Map<string, number>();
  for (const [word, count] of counted(words)) addWord(features, word, 1 + Math.log(count));
  const content = words.filter((word) => weightOf(word) === CONTENT_WEIGHT && word.kind === 'word');
  for (const [i, { text: next }] of content.slice(1).entries()) features.set(`n:${content[i]?.text} ${next}`, NEIGHBOURS_WEIGHT);
  return features;
}

/** The words of a text. The name of a function's argument counts as a name in code everywhere in the text, because such names are arbitrary. */
function withArgumentsAsNames(text: string): Word[] {
  const signatures = [...text.matchAll(ARGUMENTS)].map((match) => match[1] ?? '').join(' ');
  const names = new Set(wordsOf(signatures).map((word) => word.text));
  return wordsOf(text)
    .filter((word) => word.kind !== 'whole')
    .map((word) => (names.has(word.text) ? { ...word, inName: true } : word));
}

/** Counts each word. A word that also occurs outside of names in code doesn't count as part of a name. */
function counted(words: readonly Word[]): Map<Word, number> {
  const first = new Map<string, { word: Word; count: number }>();
  for (const word of words) {
    const seen = first.get(word.text);
    const plain = seen && !seen.word.inName ? seen.word : word;
    first.set(word.text, { word: plain, count: (seen?.count ?? 0) + 1 });
  }
  return new Map([...first.values()].map(({ word, count }) => [word, count]));
}

function addWord(features: Map<string, number>, word: Word, frequency: number): void {
  const weight = weightOf(word) * frequency;
  add(features, `w:${word.text}`, weight);
  if (word.kind !== 'word' || weight < NAME_WEIGHT || word.text.length <= GRAM_CHARS) return;
  const marked = `^${word.text}$`;
  const grams = Array.from({ length: marked.length - GRAM_CHARS + 1 }, (_, i) => marked.slice(i, i + GRAM_CHARS));
  for (const gram of grams) add(features, `g:${gram}`, (GRAMS_WEIGHT * weight) / Math.sqrt(grams.length));
}

function weightOf(word: Word): number {
  if (word.kind === 'number' || (word.kind === 'word' && word.text.length === 1)) return NUMBER_WEIGHT;
  if (STOP_WORDS.has(word.text)) return STOP_WEIGHT;
  if (ROUTINE_WORDS.has(word.text)) return ROUTINE_WEIGHT;
  return word.inName ? NAME_WEIGHT : CONTENT_WEIGHT;
}

function add(features: Map<string, number>, feature: string, weight: number): void {
  features.set(feature, (features.get(feature) ?? 0) + weight);
}
