import type { Fact } from '@etude/contracts/memory';
import { contentDigest } from '../skills/content-digest.js';
import type { Statement } from './contradiction.js';
import { factId } from './fact-id.js';
import { isNumber } from './stem-words.js';

const KEYS_MAX = 12;

/**
 * What facts that may be the same, or contradict each other, have in common; each holds the owner. So that they are found whatever
 * an embedder thinks of them: by the id that the text gives, by the words in any order, by what is said of what, and by a subject.
 */
export function statementKeys(
  fact: Pick<Fact, 'scope' | 'text' | 'category' | 'subject'>,
  { plain, telling, frames }: Statement,
): string[] {
  const { scope, category, subject } = fact;
  const key = (kind: string, of: unknown) => `${kind}:${contentDigest([scope.agent, scope.user, of]).slice(0, 24)}`;
  const framed = plain.isLong ? [] : [...new Set(frames.map((frame) => frame.key))];
  return [
    `text:${factId(scope, fact.text)}`,
    ...(subject === undefined ? [] : [key('subject', [category, normalSubject(subject)])]),
    ...(telling.length === 0 ? [] : [key('words', telling.filter((word) => !isNumber(word)).toSorted())]),
    ...framed.map((frame) => key('frame', frame)),
  ].slice(0, KEYS_MAX);
}

export function haveOneSubject(a: Fact, b: Fact): boolean {
  return (
    a.subject !== undefined && b.subject !== undefined && a.category === b.category && normalSubject(a.subject) === normalSubject(b.subject)
  );
}

function normalSubject(subject: string): string {
  return subject.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim();
}
