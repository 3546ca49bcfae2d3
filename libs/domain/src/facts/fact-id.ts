import type { Fact } from '@etude/contracts/memory';
import { contentDigest } from '../skills/content-digest.js';

/** The same statement of the same owner has one id, whatever its spacing, capitals and final full stop. */
export function factId(scope: Fact['scope'], text: string): string {
  return `f${contentDigest([scope.tenant, scope.agent, scope.user, normalFactText(text)]).slice(0, 32)}`;
}

/**
 * Id of the n-th time that one statement became true, counted from 1: told, superseded, and told again later is two records, so that
 * the history keeps both times.
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
