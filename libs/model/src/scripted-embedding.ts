import { createHash } from 'node:crypto';

/** A vector of length 1 from the words of a text: texts with the same words are near each other. It is no model. */
export function wordVector(text: string, dimension: number): Float32Array {
  const vector = new Float32Array(dimension);
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [''];
  for (const word of words) {
    const hash = createHash('sha256').update(word).digest();
    const at = hash.readUInt32LE(0) % dimension;
    vector[at] = (vector[at] ?? 0) + ((hash[4] ?? 0) % 2 === 0 ? 1 : -1);
  }
  const length = Math.hypot(...vector);
  // Words may cancel each other out; a vector of nothing has no direction.
  if (length === 0) vector[0] = 1;
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** As the protocol writes it: numbers, or base64 of little-endian floats. */
export function wireVector(vector: Float32Array, format: 'float' | 'base64'): number[] | string {
  if (format === 'float') return [...vector];
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, i) => bytes.writeFloatLE(value, i * 4));
  return bytes.toString('base64');
}
