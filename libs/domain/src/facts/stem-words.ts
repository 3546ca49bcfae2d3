import { wordsOf } from '../retrieval/words.js';

/** Words that can be added or left out without another thing being said. */
const LIGHT: ReadonlySet<string> = new Set(
  'the a an is was be been being of that there very quite so too it its said told mentioned says reports noted , as by for in on at and their his her your our has have'.split(
    ' ',
  ),
);
/** Words that look like nothing and turn a sentence round. */
const TELLING = /^(?:to|from|before|after|over|under|above|below|more|less|only|all|none|if|unless|until)$/;

/** What a statement is about, in its order: stems of all but light words. */
export function tellingWords(words: readonly string[]): string[] {
  return words.filter((word) => word !== "'s" && !LIGHT.has(word)).map(stemmed);
}

/** What is more than one word for search, such as `c++`, a path or a script without spaces, is itself: parts of it are not what it says. */
export function stemmed(word: string): string {
  if (TELLING.test(word) || !/^[\p{L}\p{M}]+$/u.test(word)) return word;
  const [only, ...more] = wordsOf(word);
  return only?.kind === 'word' && more.length === 0 ? only.text : word;
}

export function isNumber(word: string): boolean {
  return /^[$€£]?v?\p{N}+(?:[.:,/-]\p{N}+)*(?:\.x)?(?:[a-z%]{1,4})?$/u.test(word);
}
