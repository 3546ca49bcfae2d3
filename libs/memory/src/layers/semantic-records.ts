import type { Fact } from '@etude/contracts/memory';
import { isCurrent } from '@etude/domain/facts/fact-changes';
import { factKeys } from '@etude/domain/facts/fact-keys';
import type { KnownFact } from '@etude/domain/facts/fact-plan';
import { factEntry } from '@etude/domain/retrieval/entries';
import type { MemoryRecord, StoredRecord } from '../record-store.js';
import { bodyOf, parseBody } from './stored-body.js';

export const LAYER = 'semantic';

/** A fact with the record that holds it. */
export interface StoredKnownFact extends KnownFact {
  readonly record: StoredRecord;
  readonly takenInOrder: readonly string[];
}

/**
 * `status`: absent, `superseded` or `archived`; `name`: the fact that took its place, so that the chain is found backwards;
 * `subject`: the values that it shares with facts that say the same or have its subject, see `factKeys`.
 */
export function factRecord(fact: Fact, taken: readonly string[]): MemoryRecord {
  const { id, scope, category, supersededBy } = fact;
  const { title, text, sources, createdAt, worth } = factEntry(fact);
  const shown = isCurrent(fact);
  const fields = {
    category,
    subject: [...new Set([firstLifeKey(id), ...factKeys(fact)])],
    ...(shown ? {} : { status: 'superseded' }),
    ...(supersededBy === undefined ? {} : { name: supersededBy }),
  };
  const named = { layer: LAYER, kind: 'fact', key: id, scope } as const;
  return { ...named, createdAt, worth, shown, fields, title, text, sources, body: bodyOf(fact, taken) };
}

export function factOfRecord(record: StoredRecord): Fact {
  return parseBody<Fact>(record).value;
}

export function knownFact(record: StoredRecord, similarity: number): StoredKnownFact {
  const { value: fact, taken } = parseBody<Fact>(record);
  return { record, fact, taken: new Set(taken), takenInOrder: taken, similarity };
}

/** Stays with a fact whose text is changed, so that its id is never given to another. */
function firstLifeKey(id: string): string {
  return `text:${id.split('.', 1)[0]}`;
}
