import { expect, it } from 'vitest';
import { insertRequests, PointVectors } from './point-vectors.js';

/** The default limit of a server for the body of a request. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
const MODEL = { name: 'sample', dimension: 384 };
const vectors = new PointVectors('secret', 'acme');

function pointOf(text: string) {
  const vector = vectors.of([{ text, vector: Float32Array.from({ length: MODEL.dimension }, (_, i) => Math.sin(i + text.length)) }], MODEL);
  return { point: { payload: { content: text, w: vectors.weightsIn(vector) }, vector } };
}

const letter = (i: number) => 'abcdefghijklmnopqrstuvwxyz'.charAt(i % 26);
const word = (i: number) => `${letter(i)}${letter(i / 26)}${letter(i / 676)}`;
const TEXTS = {
  'short words': Array.from({ length: 1_000 }, (_, i) => word(i)).join(' '),
  'a script without spaces': Array.from({ length: 700 }, (_, i) => String.fromCodePoint(0x4e00 + ((i * 7) % 20_000))).join(''),
};

it.each(Object.entries(TEXTS))('keeps insert requests within the body limit of a server, with %s', async (_, text) => {
  const point = pointOf(text);
  const prepared = Array.from({ length: 1_000 }, () => point);
  const requests = await Array.fromAsync(insertRequests(prepared));
  expect(requests.flat()).toHaveLength(1_000);
  const sizes = requests.map((request) => Buffer.byteLength(JSON.stringify({ points: request.map((one) => one.point) })));
  expect(Math.max(...sizes)).toBeLessThan(BODY_BYTES_MAX);
});
