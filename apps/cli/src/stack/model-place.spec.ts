import { expect, it } from 'vitest';
import { modelName, modelUrl } from './model-place.js';

it.each([
  [undefined, 'https://api.openai.com/v1'],
  ['', 'https://api.openai.com/v1'],
  ['http://localhost:11434/v1/', 'http://localhost:11434/v1'],
  ['https://me:secret@models.example/v1?key=secret#secret', 'https://models.example/v1'],
  ['nonsense', null],
])('shows %s without what may be a key', (OPENAI_BASE_URL, shown) => {
  expect(modelUrl({ OPENAI_BASE_URL })).toBe(shown);
});

it('names the model that is set, else where the first one is', () => {
  const OPENAI_BASE_URL = 'http://me:secret@localhost:1/v1';
  expect(modelName({ OPENAI_BASE_URL, OPENAI_MODEL: 'small' })).toBe('small');
  expect(modelName({ OPENAI_BASE_URL })).toBe('the first model of localhost:1');
});
