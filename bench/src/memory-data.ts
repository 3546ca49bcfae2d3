import type { MemoryRecord, IndexedText } from '@etude/memory/record-store';
import type { Fact } from '@etude/contracts/memory';

export const DIMENSION = 384;
const TENANTS = 50;
/** Time of the newest record. The times of records are a minute apart and repeat every 90 days. */
export const NOW = Date.UTC(2026, 0, 1);

const TOPICS = 200;
const COMMON_WORDS = 20_000;
const TOPIC_WORDS = 300;
const NOISE = 1 << 20;
const WORDS_MIN = 12;
const WORDS_MAX = 60;
const QUERY_WORDS = 6;
/** Number of the most frequent words, like "the" and "of". Queries never have them. */
const FILLERS = 50;
/** Every tenth record is the large tenant's, as in the measurement that set the aim. The other tenants share the rest. */
const LARGE_EVERY = 10;

export interface DataRecord {
  readonly id: number;
  readonly tenant: number;
  readonly text: string;
  readonly vector: Float32Array;
  readonly worth: number;
  readonly createdAt: number;
}

export interface DataQuery {
  readonly tenant: number;
  readonly text: string;
  readonly vector: Float32Array;
}

export const LARGE_TENANT = 0;
export const tenantName = (tenant: number) => `tenant-${String(tenant).padStart(2, '0')}`;

export function tenantOf(i: number): number {
  return i % LARGE_EVERY === 0 ? LARGE_TENANT : 1 + ((i - Math.floor(i / LARGE_EVERY) - 1) % (TENANTS - 1));
}

/**
 * Texts and unit vectors in clusters, equal in every run. Each record has its direction and two fifths of its words from one of 200 topics.
 * Word frequencies follow Zipf's law, as in a language. Any record can be made without the others.
 */
export class MemoryData {
  readonly #common = zipf(COMMON_WORDS);
  readonly #topical = zipf(TOPIC_WORDS);
  readonly #fillers = new Set(Array.from({ length: FILLERS }, (_, n) => spell(n)));
  readonly #noise: Float32Array;
  readonly #topics: readonly Float32Array[];

  constructor() {
    const random = randomOf(1);
    this.#noise = Float32Array.from({ length: NOISE }, () => gaussian(random) / Math.sqrt(DIMENSION));
    this.#topics = Array.from({ length: TOPICS }, () => unit(Float32Array.from({ length: DIMENSION }, () => gaussian(random))));
  }

  record(i: number): DataRecord {
    const random = randomOf(i + 17);
    const topic = Math.floor(random() * TOPICS);
    const length = WORDS_MIN + Math.floor(random() * (WORDS_MAX - WORDS_MIN));
    const text = Array.from({ length }, () => this.#word(topic, random)).join(' ');
    const createdAt = NOW - (i % (90 * 24 * 60)) * 60_000;
    return { id: i, tenant: tenantOf(i), text, vector: this.#vector(topic, random), worth: Math.round(random() * 100) / 100, createdAt };
  }

  /** A query for an existing record: some of the record's rarer words, and a vector near the record's vector. */
  query(i: number, record: DataRecord): DataQuery {
    const random = randomOf(0x5eed_0000 + i);
    const words = record.text.split(' ').filter((word) => !this.#fillers.has(word));
    const text = Array.from({ length: QUERY_WORDS }, () => words[Math.floor(random() * words.length)]).join(' ');
    return { tenant: record.tenant, text: `${text} ${i}`, vector: this.#near(record.vector, 0.5, random) };
  }

  #word(topic: number, random: () => number): string {
    if (random() < 0.4) return spell(COMMON_WORDS + topic * TOPIC_WORDS + placeOf(this.#topical, random()));
    return spell(placeOf(this.#common, random()));
  }

  #vector(topic: number, random: () => number): Float32Array {
    return this.#near(this.#topics[topic] ?? new Float32Array(DIMENSION), 0.8, random);
  }

  #near(direction: Float32Array, distance: number, random: () => number): Float32Array {
    const from = Math.floor(random() * (NOISE - DIMENSION));
    const vector = new Float32Array(DIMENSION);
    for (let d = 0; d < DIMENSION; d += 1) vector[d] = (direction[d] ?? 0) + distance * (this.#noise[from + d] ?? 0);
    return unit(vector);
  }
}

export function recordOf({ id, tenant, text, worth, createdAt }: DataRecord): MemoryRecord {
  const key = `fact-${id}`;
  const scope = { tenant: tenantName(tenant), agent: `agent-${id % 4}`, user: null };
  const value = { id: key, scope, text, category: 'general', confidence: worth, createdAt } satisfies Partial<Fact>;
  const more = { source: 'experience', episodes: [], support: 1, accessCount: 0 };
  const fields = { id: key, category: 'general' };
  const shown = { shown: true, fields, title: 'general', text, sources: [] };
  return {
    layer: 'semantic',
    kind: 'fact',
    key,
    scope,
    createdAt,
    worth,
    ...shown,
    body: JSON.stringify({ value: { ...value, ...more } }),
  };
}

export function indexedOf({ text, vector }: DataRecord): IndexedText {
  return { text, vector };
}

/** Cumulative shares of words whose frequency falls with their rank. */
function zipf(words: number): Float64Array {
  const shares = new Float64Array(words);
  let sum = 0;
  for (let rank = 0; rank < words; rank += 1) shares[rank] = sum += 1 / (rank + 2.7);
  return shares.map((share) => share / sum);
}

function placeOf(shares: Float64Array, at: number): number {
  let low = 0;
  let high = shares.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((shares[middle] ?? 1) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

const ONSETS = ['b', 'd', 'f', 'g', 'k', 'l', 'm', 'n', 'p', 'r', 't', 'v', 'st', 'tr', 'pl', 'gr'];
const NUCLEI = ['a', 'o', 'i', 'u', 'ar', 'on', 'il', 'ul'];
const SPELLED: string[] = [];

/** The n-th word. Frequent words are short. No word has an ending that a stemmer would change. */
function spell(n: number): string {
  const known = SPELLED[n];
  if (known !== undefined) return known;
  let word = '';
  for (let rest = n + 1; rest > 0; rest = Math.floor(rest / 128)) word += `${ONSETS[rest % 16]}${NUCLEI[Math.floor(rest / 16) % 8]}`;
  return (SPELLED[n] = word);
}

function gaussian(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function unit(vector: Float32Array): Float32Array {
  let square = 0;
  for (const value of vector) square += value * value;
  const scale = 1 / Math.sqrt(square);
  return vector.map((value) => value * scale);
}

/** A Mulberry32 generator, which gives equal numbers on every machine. */
export function randomOf(seed: number): () => number {
  let state = Math.imul(seed, 0x9e37_79b1) >>> 0;
  return () => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
