import type { Fact } from '@etude/contracts/memory';
import { contentDigest } from '../skills/content-digest.js';

type Keyed = Pick<Fact, 'scope' | 'text' | 'category' | 'subject' | 'wordings'>;

/** Id of a statement of one owner. Only outer blanks and the Unicode form don't count: `getUser` and `getuser` are two facts. */
export function factId(scope: Fact['scope'], text: string): string {
  return `f${contentDigest([scope.tenant, scope.agent, scope.user, plainText(text)]).slice(0, 32)}`;
}

/**
 * Id of the n-th time that a statement became true, counted from 1. A replaced fact that is told again becomes a new record, so that the
 * history keeps both times.
 */
export function lifeId(id: string, life: number): string {
  return life === 1 ? id : `${id}.${life}`;
}

/** The number of the life whose id is `other`; 0 for the id of another statement. */
export function lifeOf(id: string, other: string): number {
  if (other === id) return 1;
  return other.startsWith(`${id}.`) ? Number(other.slice(id.length + 1)) || 0 : 0;
}

const plainText = (text: string) => text.normalize('NFC').trim();

/** Whether a stored fact has the told text, or has it as a wording. Outer blanks and the Unicode form don't count. */
export function saysSame({ text, wordings = [] }: Fact, told: Fact): boolean {
  return [text, ...wordings.map((wording) => wording.text)].some((one) => plainText(one) === plainText(told.text));
}

/** Whether both facts have the same named subject. Then only the newest of them is true. */
export function haveOneSubject(a: Fact, b: Fact): boolean {
  return a.subject !== undefined && b.subject !== undefined && subjectKey(a) === subjectKey(b);
}

/**
 * The keys by which a fact is looked up. Facts with the same text or subject share a key, so that they find each other whatever the
 * embedder says.
 */
export function factKeys(fact: Keyed): string[] {
  const texts = [fact.text, ...(fact.wordings ?? []).map(({ text }) => text)];
  return [...texts.map((text) => `text:${factId(fact.scope, text)}`), ...(fact.subject === undefined ? [] : [subjectKey(fact)])];
}

/** The key of a subject among the facts of one owner and category. */
export function subjectKey({ scope: { agent, user }, category, subject = '' }: Pick<Keyed, 'scope' | 'category' | 'subject'>): string {
  return `subject:${contentDigest([agent, user, [category, plainText(subject)]]).slice(0, 24)}`;
}
