import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import { expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { readSettings } from '../cli.js';
import { embedderSettings, recordEmbedder } from './embedder.js';

function machine(fetched: boolean, environment: Record<string, string> = {}) {
  const root = testFolder();
  const folder = join(root, '.etude/cache/embedder');
  mkdirSync(folder, { recursive: true });
  for (const { name, bytes } of fetched ? SENTENCE_MODEL.files : []) {
    writeFileSync(join(folder, name), '');
    truncateSync(join(folder, name), bytes);
  }
  return { root, home: join(root, '.etude'), folder, settings: readSettings(environment) };
}

it('uses the sentence model if its files exist, else the lexical embedder', () => {
  const { folder, ...there } = machine(true);
  expect(embedderSettings(there)).toEqual({ ETUDE_EMBEDDER: 'sentence', ETUDE_EMBEDDER_PATH: folder });
  expect(embedderSettings(machine(false))).toMatchObject({ ETUDE_EMBEDDER: 'lexical' });
});

it('prefers the embedder of the environment', () => {
  expect(embedderSettings(machine(true, { ETUDE_EMBEDDER: 'lexical' }))).toMatchObject({ ETUDE_EMBEDDER: 'lexical' });
  expect(embedderSettings(machine(true, { ETUDE_EMBEDDING_MODEL: 'nomic' }))).toEqual({});
});

it('keeps the embedder of the last start, even if files are fetched or removed later', () => {
  const { folder, ...there } = machine(true);
  recordEmbedder(there.home, embedderSettings(there));
  rmSync(folder, { recursive: true });
  expect(embedderSettings(there)).toMatchObject({ ETUDE_EMBEDDER: 'sentence' });
  recordEmbedder(there.home, { ETUDE_EMBEDDER: 'lexical' });
  expect(embedderSettings(there)).toMatchObject({ ETUDE_EMBEDDER: 'lexical' });
});
