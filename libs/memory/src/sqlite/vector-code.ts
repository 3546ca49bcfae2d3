/** Bits of a code; 128 bytes beside the 1,536 of a vector of 384 numbers. */
export const CODE_BITS = 1_024;

/** Standard deviations by which codes may be further apart than their directions say; measured in decision 260. */
const SPREAD = 2;
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
  const size = 2 ** Math.ceil(Math.log2(direction.length));
  const [first, ...others] = signsFor(size);
  const once = new Float32Array(size);
  once.set(direction);
  turn(once, first);
  const code = new Uint8Array(CODE_BITS / 8);
  const twice = new Float32Array(size);
  others.forEach((signs, block) => {
    twice.set(once);
    turn(twice, signs);
    for (let i = 0; i < Math.min(size, CODE_BITS); i += 1) {
      const bit = block * size + i;
      if ((twice[i] ?? 0) > 0) code[bit >> 3] = (code[bit >> 3] ?? 0) | (1 << (bit & 7));
    }
  });
  return code;
}

/** In how many bits the codes of two directions of this cosine differ at most, but for about one pair in a hundred. */
export function codeDistanceOf(cosine: number): number {
  const differing = Math.max(ANGLE_MIN, Math.acos(Math.min(1, Math.max(-1, cosine))) / Math.PI);
  return Math.ceil(CODE_BITS * differing + SPREAD * Math.sqrt(CODE_BITS * differing * (1 - differing)));
}

type Signs = readonly [first: Float32Array, ...others: Float32Array[]];
const SIGNS = new Map<number, Signs>();

/** 1 and -1 by chance, the same on every machine: for the first turn, and for each second one that it takes to fill a code. */
function signsFor(size: number): Signs {
  const known = SIGNS.get(size);
  if (known !== undefined) return known;
  const signsAt = (block: number) => Float32Array.from({ length: size }, (_, i) => (mixed(block * 2 ** 16 + i) & 1 ? 1 : -1));
  const signs: Signs = [signsAt(0), ...Array.from({ length: Math.max(1, CODE_BITS / size) }, (_, block) => signsAt(block + 1))];
  SIGNS.set(size, signs);
  return signs;
}

/** The finalizer of MurmurHash3 (Appleby, public domain). */
function mixed(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return hash ^ (hash >>> 16);
}

/** In place; lengths grow, which signs do not see. */
function turn(values: Float32Array, signs: Float32Array | undefined): void {
  const size = values.length;
  for (let i = 0; i < size; i += 1) values[i] = (values[i] ?? 0) * (signs?.[i] ?? 1);
  for (let half = 1; half < size; half *= 2) {
    for (let start = 0; start < size; start += 2 * half) {
      for (let i = start; i < start + half; i += 1) {
        const a = values[i] ?? 0;
        const b = values[i + half] ?? 0;
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
}
