/** Number of bits in the code of a vector. These are 128 bytes; a vector of 384 numbers has 1,536. */
export const CODE_BITS = 1_024;
/** Smallest angle, as a share of half a turn. Below it rounding decides the bits. */
const ANGLE_MIN = 0.01;

/**
 * One bit for each of 1,024 planes: the direction's side of the plane. The share of differing bits of two codes approximates the angle
 * between the directions, divided by half a turn (Charikar, "Similarity estimation techniques from rounding algorithms", 2002). The planes
 * must never change, because codes are stored.
 *
 * The direction is turned twice before the signs are taken (random signs, then a Walsh-Hadamard transform). A vector of hashed words has
 * few nonzero numbers, whose signs alone say little.
 */
export function vectorCode(direction: Float32Array): Uint8Array {
  const size = Math.max(4, 2 ** Math.ceil(Math.log2(direction.length)));
  const numbers = new Float32Array(size);
  numbers.set(direction);
  const once = turnInto(new Float32Array(size), numbers, 0);
  const bits = new Int32Array(numbers.buffer, 0, Math.min(size, CODE_BITS));
  const code = new Uint8Array(CODE_BITS / 8);
  for (let at = 0; at < CODE_BITS; at += size) {
    turnInto(numbers, once, at / size + 1);
    // The bits of a float above zero are an integer above zero. The sign is computed, since a branch on random signs is mostly mispredicted.
    for (let i = 0; i < bits.length; i += 1) code[(at + i) >> 3]! |= ((~bits[i]! & -bits[i]!) >>> 31) << ((at + i) & 7);
  }
  return code;
}

/** The expected number of differing bits for directions with this cosine, plus `deviations` standard deviations. */
export function codeDistanceOf(cosine: number, deviations: number): number {
  const differing = Math.max(ANGLE_MIN, Math.acos(Math.min(1, Math.max(-1, cosine))) / Math.PI);
  return Math.min(CODE_BITS, Math.ceil(CODE_BITS * differing + deviations * Math.sqrt(CODE_BITS * differing * (1 - differing))));
}

/**
 * The distance in bits within which this share of the codes of unrelated directions lies.
 *
 * The quantile of the normal distribution follows Hastings (Abramowitz and Stegun, 26.2.22; error below 0.003), for shares up to a half.
 */
export function chanceDistanceOf(share: number): number {
  if (share >= 0.5) return CODE_BITS;
  const t = Math.sqrt(-2 * Math.log(share));
  const deviations = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t ** 2);
  return Math.ceil((CODE_BITS - deviations * Math.sqrt(CODE_BITS)) / 2);
}

/** Pseudorandom 1 and -1, by vector size and number of the turn; the same on every machine. */
const SIGNS = new Map<string, Float32Array>();

function signsOf(size: number, turn: number): Float32Array {
  const name = `${size} ${turn}`;
  const signs = SIGNS.get(name) ?? Float32Array.from({ length: size }, (_, i) => (mixed(turn * 2 ** 16 + i) & 1 ? 1 : -1));
  SIGNS.set(name, signs);
  return signs;
}

/** The finalizer of MurmurHash3 (Appleby, public domain). */
function mixed(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return hash ^ (hash >>> 16);
}

/** Applies signs, then a Walsh-Hadamard transform, two of its steps at a time, and returns `to`. Lengths grow, which doesn't affect signs. */
function turnInto(to: Float32Array, from: Float32Array, turn: number): Float32Array {
  const signs = signsOf(to.length, turn);
  for (let i = 0; i < to.length; i += 4) {
    const a = from[i]! * signs[i]!;
    const b = from[i + 1]! * signs[i + 1]!;
    const c = from[i + 2]! * signs[i + 2]!;
    const d = from[i + 3]! * signs[i + 3]!;
    to[i] = a + b + (c + d);
    to[i + 1] = a - b + (c - d);
    to[i + 2] = a + b - (c + d);
    to[i + 3] = a - b - (c - d);
  }
  let step = 4;
  for (; step * 4 <= to.length; step *= 4) for (let start = 0; start < to.length; start += 4 * step) addFour(to, start, step);
  for (let i = 0; i < to.length - step; i += 1) {
    const a = to[i]!;
    const b = to[i + step]!;
    to[i] = a + b;
    to[i + step] = a - b;
  }
  return to;
}

/** Two steps of the transform for the numbers at `start` to `start + 4 * step`. */
function addFour(to: Float32Array, start: number, step: number): void {
  for (let i = start, j = i + step, k = j + step, l = k + step; i < start + step; i += 1, j += 1, k += 1, l += 1) {
    const a = to[i]!;
    const b = to[j]!;
    const c = to[k]!;
    const d = to[l]!;
    to[i] = a + b + (c + d);
    to[j] = a - b + (c - d);
    to[k] = a + b - (c + d);
    to[l] = a - b - (c - d);
  }
}
