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

export function stemmed(word: string): string {
  if (TELLING.test(word) || /\p{N}/u.test(word)) return word;
  return wordsOf(word).find(({ kind }) => kind === 'word' || kind === 'whole')?.text ?? word;
}

export function isNumber(word: string): boolean {
  return /^[$€£]?v?\p{N}+(?:[.:,/-]\p{N}+)*(?:\.x)?(?:[a-z%]{1,4})?$/u.test(word);
}
