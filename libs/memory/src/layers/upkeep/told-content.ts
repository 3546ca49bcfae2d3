import { isDeepStrictEqual } from 'node:util';
import type { MemoryRecord, RecordKind } from '../../record-store.js';
import { parseBody } from '../stored-body.js';

/** What memory itself changes in a record after it was told, by kind: counts, evidence, and what became of it. */
const CHANGING: { readonly [kind in RecordKind]?: readonly string[] } = {
  transition: ['recalled'],
  fact: ['support', 'confidence', 'episodes', 'accessCount', 'subject', 'wordings', 'validTo', 'supersededBy', 'updatedAt', 'touched'],
  document: ['createdAt'],
  chunk: ['createdAt'],
  skill: [
    'status',
    'statusReason',
    'evidence',
    'cues',
    'fingerprints',
    'executionCount',
    'successRate',
    'updatedAt',
    'contract',
    'proof',
    'history',
    'untrusted',
    'replacedBy',
    'usage',
  ],
};

/** Whether two records of one key and owner were told the same, whatever has become of each since. */
export function areToldAlike(a: MemoryRecord, b: MemoryRecord): boolean {
  const isOneOwner = a.scope.agent === b.scope.agent && a.scope.user === b.scope.user;
  return isOneOwner && (a.body === b.body || isDeepStrictEqual(toldBy(a), toldBy(b)));
}

function toldBy(record: MemoryRecord): Readonly<Record<string, unknown>> {
  const changing = CHANGING[record.kind] ?? [];
  const { value } = parseBody<Readonly<Record<string, unknown>>>(record);
  return Object.fromEntries(Object.entries(value).filter(([name]) => !changing.includes(name)));
}
