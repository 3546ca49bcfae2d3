import { createHash } from 'node:crypto';
import type { ErasureSubject } from '../memory/upkeep-store.js';

/** Field of the hash `erased`: digests of names, no names. */
export function markOf(subject: ErasureSubject): string {
  if ('all' in subject) return 'tenant';
  return 'agent' in subject ? `agent:${digestOf(subject.agent)}` : `user:${digestOf(subject.user)}`;
}

/** Every mark that speaks of what these own. */
export function marksOf(agent: string, user: string | null): string[] {
  return [markOf({ all: true }), markOf({ agent }), ...(user === null ? [] : [markOf({ user })])];
}

function digestOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
