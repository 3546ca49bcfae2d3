import { expect, it } from 'vitest';
import { builtInOf, embedderSetting, modelNameOf } from './embedder-names.js';

it('accepts the setting name and the model name of an embedder', () => {
  expect([modelNameOf('sentence'), modelNameOf('lexical'), modelNameOf('nomic')]).toEqual(['all-minilm-l6-v2', 'lexical-hash-1', 'nomic']);
  expect([builtInOf('sentence'), builtInOf('lexical-hash-1'), builtInOf('nomic'), builtInOf('toString')]).toEqual([
    'sentence',
    'lexical',
    null,
    null,
  ]);
});

it('names the setting that starts services with it', () => {
  expect(embedderSetting('all-minilm-l6-v2')).toBe('ETUDE_EMBEDDER=sentence');
  expect(embedderSetting('nomic')).toBe('ETUDE_EMBEDDING_MODEL=nomic');
  expect(embedderSetting('nomic', 768)).toBe('ETUDE_EMBEDDING_MODEL=nomic ETUDE_EMBEDDING_DIMENSION=768');
  expect(embedderSetting('all-minilm-l6-v2', 384)).toBe('ETUDE_EMBEDDER=sentence');
});
