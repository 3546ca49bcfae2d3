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
  const size = once.length;
  once.fill(0).set(direction);
  turn(once, first);
  const code = new Uint8Array(CODE_BITS / 8);
  const bits = Math.min(size, CODE_BITS);
  for (let block = 0; block < others.length; block += 1) {
    twice.set(once);
    turn(twice, others[block]);
    for (let i = 0, bit = block * size; i < bits; i += 1, bit += 1) {
      if ((twice[i] ?? 0) > 0) code[bit >> 3] = (code[bit >> 3] ?? 0) | (1 << (bit & 7));
    }
  }
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
  /** What is worked in, not made anew for each code. */
  readonly once: Float32Array;
  readonly twice: Float32Array;
}

const PLANES = new Map<number, Planes>();

function planesOf(size: number): Planes {
  const known = PLANES.get(size);
  if (known !== undefined) return known;
  const signsAt = (block: number) => Float32Array.from({ length: size }, (_, i) => (mixed(block * 2 ** 16 + i) & 1 ? 1 : -1));
  const others = Array.from({ length: Math.max(1, CODE_BITS / size) }, (_, block) => signsAt(block + 1));
  const planes = { first: signsAt(0), others, once: new Float32Array(size), twice: new Float32Array(size) };
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

/** In place, two steps of the transform at a time; lengths grow, which signs do not see. */
function turn(values: Float32Array, signs: Float32Array | undefined): void {
  const size = values.length;
  for (let i = 0; i < size; i += 1) values[i] = (values[i] ?? 0) * (signs?.[i] ?? 1);
  let step = 1;
  for (; step * 4 <= size; step *= 4) {
    for (let start = 0; start < size; start += 4 * step) {
      for (let i = start; i < start + step; i += 1) {
        const a = values[i] ?? 0;
        const b = values[i + step] ?? 0;
        const c = values[i + 2 * step] ?? 0;
        const d = values[i + 3 * step] ?? 0;
        values[i] = a + b + (c + d);
        values[i + step] = a - b + (c - d);
        values[i + 2 * step] = a + b - (c + d);
        values[i + 3 * step] = a - b - (c - d);
      }
    }
  }
  for (let i = 0; i < size - step; i += 1) {
    const a = values[i] ?? 0;
    const b = values[i + step] ?? 0;
    values[i] = a + b;
    values[i + step] = a - b;
  }
}
