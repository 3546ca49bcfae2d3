import { cosineOf } from '@etude/domain/retrieval/calibration';
import { embedderConformance } from '@etude/domain/testing/embedder-conformance';
import { testFolder } from '@etude/test-support/test-folder';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_FOLDER, missingFiles, SentenceEmbedder } from '../src/sentence/sentence-embedder.js';

/** The setting is read here as a service's `main.ts` reads it. */
const folder = process.env['ETUDE_EMBEDDER_PATH'] ?? DEFAULT_FOLDER;
const missing = missingFiles(folder);
const why = missing.length === 0 ? '' : `, skipped as there is no ${missing.join(' and no ')} in ${folder}`;

interface Wanted {
  readonly text: string;
  readonly vector: number[];
  readonly exact: number[];
}
const none = new Float32Array();

/** One embedder for all tests, because each one loads the weights. Its thread ends with the process. */
const embedder = new SentenceEmbedder({ folder });

describe.skipIf(missing.length > 0)(`SentenceEmbedder${why}`, () => {
  embedderConformance(async () => ({ embedder, close: async () => undefined }));

  it('equals an independent computation that rounds at the same places, and is near one that does not round', async () => {
    const wanted = JSON.parse(await readFile(new URL('./sentence-vectors.json', import.meta.url), 'utf8')) as Wanted[];
    const made = await embedder.embed(wanted.map(({ text }) => text));
    const least = (of: (one: Wanted) => number[]) =>
      Math.min(...wanted.map((one, i) => cosineOf(made[i] ?? none, Float32Array.from(of(one)))));
    // A value between two steps may be rounded to either step.
    expect(least(({ vector }) => vector)).toBeGreaterThan(0.995);
    expect(least(({ exact }) => exact)).toBeGreaterThan(0.975);
  });

  it('gives a text the same vector alone and among others', async () => {
    const texts = ['a question', 'Another text. '.repeat(100), 'x'];
    const together = await embedder.embed(texts);
    for (const [i, text] of texts.entries()) expect((await embedder.embed([text]))[0]).toEqual(together[i]);
  });

  it('recognises a paraphrase in other words', async () => {
    const [a, b, c] = await embedder.embed([
      'Tell whether a word reads the same backwards.',
      'Check for palindromes.',
      'Convert a temperature from Celsius to Fahrenheit.',
    ]);
    expect(cosineOf(a ?? none, b ?? none)).toBeGreaterThan(0.5);
    expect(cosineOf(a ?? none, c ?? none)).toBeLessThan(0.3);
  });

  it('says how to replace damaged weights, on every call', async () => {
    const damaged = testFolder();
    await writeFile(join(damaged, 'tokenizer.json'), '{"model": 1');
    const broken = new SentenceEmbedder({ folder: damaged });
    const failed = expect.objectContaining({ code: 'MODEL_UNAVAILABLE', message: expect.stringContaining('embedder fetch') });
    await expect(broken.embed(['a'])).rejects.toEqual(failed);
    await expect(broken.embed(['a'])).rejects.toEqual(failed);
  });
});
