import type { Fact } from '@etude/contracts/memory';
import { wordsOf } from '../retrieval/words.js';
import { contentDigest } from '../skills/content-digest.js';

type Keyed = Pick<Fact, 'scope' | 'text' | 'category' | 'subject'>;

/** Id of a statement of one owner, independent of spacing, capitals and a final full stop. */
export function factId(scope: Fact['scope'], text: string): string {
  return `f${contentDigest([scope.tenant, scope.agent, scope.user, normalFactText(text)]).slice(0, 32)}`;
}

/**
 * Id of the n-th time that a statement became true, counted from 1. A replaced fact that is told again becomes a new record, so that the
 * history keeps both times.
 */
export function lifeId(id: string, life: number): string {
  return life === 1 ? id : `${id}.${life}`;
}

export function normalFactText(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/[.!]+$/, '');
}

/** Whether two facts of one owner have the same words in the same order. Case, endings and punctuation don't count. */
export function saySame(a: Fact, b: Fact): boolean {
  return plainWords(a.text) === plainWords(b.text);
}

/** Whether both facts have the same named subject. Then only the newest of them is true. */
export function haveOneSubject(a: Fact, b: Fact): boolean {
  return a.subject !== undefined && b.subject !== undefined && subjectKey(a) === subjectKey(b);
}

/**
 * The keys by which a fact is looked up. Facts with the same words or subject share a key, so that they find each other whatever the
 * embedder says.
 */
export function factKeys(fact: Keyed): string[] {
  return [`text:${factId(fact.scope, fact.text)}`, ...(fact.subject === undefined ? [] : [subjectKey(fact)]), wordsKey(fact)];
}

function subjectKey({ scope, category, subject = '' }: Keyed): string {
  return keyOf('subject', scope, [category, subject.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim()]);
}

function wordsKey({ scope, text }: Keyed): string {
  return keyOf('words', scope, plainWords(text));
}

function keyOf(kind: string, { agent, user }: Fact['scope'], value: unknown): string {
  return `${kind}:${contentDigest([agent, user, value]).slice(0, 24)}`;
}

const AROUND = /^["'(«“‘]+|[.,;:!?"')»”’…]+$/gu;
const LETTERS = /^[\p{L}\p{M}]+$/u;

/** Uses NFC, because NFKC turns "²" into "2". Names with signs, such as `c++`, and scripts without spaces are kept as written. */
function plainWords(text: string): string {
  const parts = text.normalize('NFC').toLowerCase().split(/\s+/u);
  return parts
    .map((part) => stemmed(part.replaceAll(AROUND, '') || part))
    .filter((part) => part !== '')
    .join(' ');
}

function stemmed(word: string): string {
  const [only, ...more] = LETTERS.test(word) ? wordsOf(word) : [];
  return only !== undefined && more.length === 0 ? only.text : word;
}
