import { isAbort } from '@etude/contracts/errors';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Embedder } from '../src/ports/model.js';
import { cosineOf } from '../src/retrieval/calibration.js';

export interface EmbedderUnderTest {
  readonly embedder: Embedder;
  close?(): Promise<void>;
}

const TEXTS = [
  'Add two numbers and print the sum.',
  'Reverse the words of a sentence.',
  'naïve café 😀',
  'x',
  'Find the shortest path in a graph.',
];

async function one(embedder: Embedder, text: string): Promise<Float32Array> {
  const [vector] = await embedder.embed([text]);
  if (!vector) throw new Error(`no vector for ${JSON.stringify(text)}`);
  return vector;
}

export function embedderConformance(make: () => Promise<EmbedderUnderTest>): void {
  const start = async () => {
    const made = await make();
    onTestFinished(async () => made.close?.());
    return made.embedder;
  };

  describe('as an Embedder', () => {
    it('gives one finite vector per text, all of one length', async () => {
      const embedder = await start();
      const vectors = await embedder.embed(TEXTS);
      expect(vectors).toHaveLength(TEXTS.length);
      expect(await embedder.embed([])).toEqual([]);
      for (const vector of vectors) {
        expect(vector).toBeInstanceOf(Float32Array);
        expect(vector).toHaveLength(embedder.profile.dimension);
        expect(vector.every(Number.isFinite)).toBe(true);
      }
    });

    it('keeps the order of three hundred texts', async () => {
      const embedder = await start();
      const texts = Array.from({ length: 300 }, (_, i) => `${TEXTS[i % TEXTS.length]} number${i}`);
      const vectors = await embedder.embed(texts);
      expect(vectors).toHaveLength(300);
      for (const i of [0, 1, 63, 64, 150, 299]) {
        expect(cosineOf(vectors[i] ?? new Float32Array(), await one(embedder, texts[i] ?? ''))).toBeGreaterThan(0.9999);
      }
    });

    it('takes empty and very long texts', async () => {
      const embedder = await start();
      const vectors = await embedder.embed(['', 'sum of a list '.repeat(20_000)]);
      expect(vectors.map((vector) => vector.length)).toEqual([embedder.profile.dimension, embedder.profile.dimension]);
      expect(vectors.every((vector) => vector.every(Number.isFinite))).toBe(true);
    });

    it('calibrates monotonely into 0 to 1', async () => {
      const { profile } = await start();
      const cosines = Array.from({ length: 201 }, (_, i) => (i - 100) / 100);
      const calibrated = cosines.map((value) => profile.calibrate(value));
      expect(calibrated.every((value) => value >= 0 && value <= 1)).toBe(true);
      expect(calibrated.every((value, i) => i === 0 || value >= (calibrated[i - 1] ?? 0))).toBe(true);
      expect(profile.calibrate(1)).toBeGreaterThan(0.9);
    });

    it('throws an AbortError when aborted before', async () => {
      const error = await (await start()).embed(['too late'], AbortSignal.abort()).catch((thrown: unknown) => thrown);
      expect(isAbort(error)).toBe(true);
    });
  });
}
