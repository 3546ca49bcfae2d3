import { embedderConformance } from '../../test/embedder-conformance.js';
import { describe, expect, it } from 'vitest';
import { cosineOf } from './calibration.js';
import { calibrateLexical, LexicalEmbedder } from './lexical-embedder.js';

const embedder = new LexicalEmbedder();

async function similarity(left: string, right: string): Promise<number> {
  const [a = new Float32Array(), b = new Float32Array()] = await embedder.embed([left, right]);
  return calibrateLexical(cosineOf(a, b));
}

describe('LexicalEmbedder', () => {
  embedderConformance(async () => ({ embedder }));

  it('scores tasks that differ in names and a few words 0.8', async () => {
    const left = 'Write a function total_even(numbers) that returns the sum of the even numbers in a list';
    const right = 'Write a function sum_of_evens(values) that returns the sum of the even values in a list';
    expect(await similarity(left, right)).toBeGreaterThanOrEqual(0.8);
  });

  it('scores a paraphrase in other words below 0.5', async () => {
    expect(await similarity('Tell whether a word is its own mirror image.', 'Check for palindromes.')).toBeLessThan(0.5);
  });

  it('gives vectors of length one, zeros for no words', async () => {
    const [some = new Float32Array(), none = new Float32Array()] = await embedder.embed(['sort a list', ' ?! ']);
    expect(Math.hypot(...some)).toBeCloseTo(1, 5);
    expect(none.every((value) => value === 0)).toBe(true);
  });

  it('gives the same vectors in every release', async () => {
    const [vector = new Float32Array()] = await embedder.embed(['Sort a list of numbers']);
    const places = [...vector.entries()]
      .filter(([, value]) => Math.abs(value) > 0.3)
      .map(([place, value]) => `${place}:${value.toFixed(3)}`);
    expect(places).toMatchInlineSnapshot(`
      [
        "3:-0.604",
        "337:0.604",
      ]
    `);
  });
});
