import { createHash } from 'node:crypto';
import type { Scope } from '@etude/contracts/memory';
import type { MemoryRecord, Owners } from '../../record-store.js';

/** That these owners were erased: what was made before `at` (ms since 1970) is not written any more. */
export interface OwnerMark {
  readonly key: string;
  readonly owners: Owners;
}

/** Names neither agent nor user: the mark stays when they are gone. */
export function markKey({ agent, user }: Owners): string {
  const parts = [agent === undefined ? '' : `agent:${digestOf(agent)}`, user === undefined ? '' : `user:${userDigest(user)}`];
  return parts.filter((part) => part !== '').join(' ') || 'tenant';
}

/** Every mark that speaks of a record of this scope. */
export function marksOf({ tenant, agent, user }: Scope): readonly OwnerMark[] {
  const all: Owners[] = [{ tenant }, { tenant, agent }, { tenant, user }, { tenant, agent, user }];
  return all.map((owners) => ({ key: markKey(owners), owners }));
}

/** Its scope names only the tenant's own; erasing takes every kind of record but this one. */
export function markRecord(owners: Owners, at: number): MemoryRecord {
  return {
    layer: 'semantic',
    kind: 'erasure',
    key: markKey(owners),
    scope: { tenant: owners.tenant, agent: 'erased', user: null },
    createdAt: at,
    worth: 0,
    shown: false,
    fields: {},
    title: '',
    text: '',
    sources: [],
    body: JSON.stringify({ value: { at } }),
  };
}

function userDigest(user: string | null): string {
  return user === null ? 'nobody' : digestOf(user);
}

function digestOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
