/** Bits of a code; 128 bytes beside the 1,536 of a vector of 384 numbers. */
export const CODE_BITS = 1_024;
/** Of half a turn. Below it rounding decides bits. */
const ANGLE_MIN = 0.01;

/**
 * On which side of 1,024 planes a direction lies: the share of bits in which two codes differ is about the angle between the directions
 * over half a turn (Charikar, "Similarity estimation techniques from rounding algorithms", 2002). The planes are the same for ever: codes are stored.
 *
 * Turned twice before signs are taken (signs by chance, then a Walsh-Hadamard transform), since a vector of hashed words has few numbers
 * that are not zero, and their signs alone say nothing.
 */
export function vectorCode(direction: Float32Array): Uint8Array {
  const { first, others, once, twice } = planesOf(2 ** Math.ceil(Math.log2(direction.length)));
  twice.numbers.fill(0).set(direction);
  turn(twice.numbers, first, once);
  const code = new Uint8Array(CODE_BITS / 8);
  others.forEach((signs, block) => {
    turn(once, signs, twice.numbers);
    writeSigns(twice.bits, code, block * once.length);
  });
  return code;
}

/** In how many bits the codes of two directions of this cosine differ, and so many standard deviations more. */
export function codeDistanceOf(cosine: number, deviations: number): number {
  const differing = Math.max(ANGLE_MIN, Math.acos(Math.min(1, Math.max(-1, cosine))) / Math.PI);
  return Math.min(CODE_BITS, Math.ceil(CODE_BITS * differing + deviations * Math.sqrt(CODE_BITS * differing * (1 - differing))));
}

/**
 * Within how many bits this share of codes lies, of directions that have nothing to do with each other.
 *
 * The quantile of the normal distribution is that of Hastings (Abramowitz and Stegun, 26.2.22; to 0.003), for shares up to a half.
 */
export function chanceDistanceOf(share: number): number {
  if (share >= 0.5) return CODE_BITS;
  const t = Math.sqrt(-2 * Math.log(share));
  const deviations = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t ** 2);
  return Math.ceil((CODE_BITS - deviations * Math.sqrt(CODE_BITS)) / 2);
}

/** For vectors padded to one size. */
interface Planes {
  /** 1 and -1 by chance, the same on every machine: for the first turn, and for each second one that it takes to fill a code. */
  readonly first: Float32Array;
  readonly others: readonly Float32Array[];
  /** What is worked in, not made anew for each code; of the second turn also as what single precision makes of it. */
  readonly once: Float32Array;
  readonly twice: { readonly numbers: Float32Array; readonly bits: Int32Array };
}

const PLANES = new Map<number, Planes>();

function planesOf(size: number): Planes {
  const known = PLANES.get(size);
  if (known !== undefined) return known;
  const signsAt = (block: number) => Float32Array.from({ length: size }, (_, i) => (mixed(block * 2 ** 16 + i) & 1 ? 1 : -1));
  const others = Array.from({ length: Math.max(1, CODE_BITS / size) }, (_, block) => signsAt(block + 1));
  const numbers = new Float32Array(size);
  const planes = { first: signsAt(0), others, once: new Float32Array(size), twice: { numbers, bits: new Int32Array(numbers.buffer) } };
  PLANES.set(size, planes);
  return planes;
}

/** The finalizer of MurmurHash3 (Appleby, public domain). */
function mixed(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return hash ^ (hash >>> 16);
}

/** From bit `at` of the code on, as far as it goes: 1 for each number above zero. Without a branch, since signs are as good as chance. */
function writeSigns(bits: Int32Array, code: Uint8Array, at: number): void {
  const count = Math.min(bits.length, CODE_BITS);
  for (let i = 0; i < count; i += 8) {
    let byte = 0;
    for (let place = 0; place < 8 && place < count; place += 1) {
      const value = bits[i + place] ?? 0;
      byte |= ((~value & -value) >>> 31) << place;
    }
    const bit = at + i;
    code[bit >> 3] = (code[bit >> 3] ?? 0) | (byte << (bit & 7));
  }
}

/**
 * Two steps of the transform at a time; lengths grow, which signs do not see.
 *
 * What is added to what, and when it is rounded to single precision, decides bits whose number is next to zero: it must stay as it is.
 */
function turn(from: Float32Array, signs: Float32Array, to: Float32Array): void {
  const size = to.length;
  let step = addFirst(from, signs, to);
  for (; step * 4 <= size; step *= 4) {
    for (let start = 0; start < size; start += 4 * step) addFours(to, start, step);
  }
  for (let i = 0; i < size - step; i += 1) {
    const a = to[i] ?? 0;
    const b = to[i + step] ?? 0;
    to[i] = a + b;
    to[i + step] = a - b;
  }
}

/** Signs, and the first two steps where there are so many numbers; how far apart are those that the next step adds. */
function addFirst(from: Float32Array, signs: Float32Array, to: Float32Array): 1 | 4 {
  const size = to.length;
  if (size < 4) {
    for (let i = 0; i < size; i += 1) to[i] = (from[i] ?? 0) * (signs[i] ?? 0);
    return 1;
  }
  for (let i = 0; i < size; i += 4) {
    const a = (from[i] ?? 0) * (signs[i] ?? 0);
    const b = (from[i + 1] ?? 0) * (signs[i + 1] ?? 0);
    const c = (from[i + 2] ?? 0) * (signs[i + 2] ?? 0);
    const d = (from[i + 3] ?? 0) * (signs[i + 3] ?? 0);
    to[i] = a + b + (c + d);
    to[i + 1] = a - b + (c - d);
    to[i + 2] = a + b - (c + d);
    to[i + 3] = a - b - (c - d);
  }
  return 4;
}

/** The numbers at `start` to `start + 4 * step`, in four rows. */
function addFours(values: Float32Array, start: number, step: number): void {
  const second = start + step;
  for (let i = start, j = second, k = j + step, l = k + step; i < second; i += 1, j += 1, k += 1, l += 1) {
    const a = values[i] ?? 0;
    const b = values[j] ?? 0;
    const c = values[k] ?? 0;
    const d = values[l] ?? 0;
    values[i] = a + b + (c + d);
    values[j] = a - b + (c - d);
    values[k] = a + b - (c + d);
    values[l] = a - b - (c - d);
  }
}
