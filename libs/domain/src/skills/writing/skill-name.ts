import { contentDigest } from '../content-digest.js';

const WORDS_MAX = 6;
const NAME_MAX = 80;
const HASH_CHARS = 6;
const STOP_WORDS = new Set([
  'a',
  'an',
  'the',
  'of',
  'and',
  'or',
  'to',
  'in',
  'is',
  'you',
  'your',
  'that',
  'which',
  'please',
  'write',
  'python',
  'program',
  'function',
]);

const snake = (text: string) =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^[_0-9]+|_+$/g, '');

/**
 * A skill's name stands for one task: its entry point, or the first telling words of its prompt, and six characters of its
 * fingerprint. So better code for the same task is a new version, and another task whose entry point happens to be called
 * `solve` too is another skill.
 */
export function skillName(prompt: string, fingerprint: string, entryPoint: string | null): string {
  const words = snake(prompt.slice(0, 2_000)).split('_');
  const telling = words.filter((word) => word !== '' && !STOP_WORDS.has(word)).slice(0, WORDS_MAX);
  const base = (entryPoint === null ? '' : snake(entryPoint)) || snake(telling.join('_')) || 'task';
  return `${base.slice(0, NAME_MAX - HASH_CHARS - 1)}_${contentDigest(fingerprint).slice(0, HASH_CHARS)}`;
}
