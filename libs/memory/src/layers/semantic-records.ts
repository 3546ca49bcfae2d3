import type { Fact } from '@etude/contracts/memory';
import { type Statement, statementOf } from '@etude/domain/facts/contradiction';
import { isCurrent } from '@etude/domain/facts/fact-changes';
import type { KnownFact } from '@etude/domain/facts/fact-plan';
import { statementKeys } from '@etude/domain/facts/statement-keys';
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
 * `subject`: what facts that may be the same or contradict it have in common, see `statementKeys`.
 */
export function factRecord(fact: Fact, taken: readonly string[]): MemoryRecord {
  const { id, scope, category, supersededBy } = fact;
  const { title, text, sources, createdAt, worth } = factEntry(fact);
  const shown = isCurrent(fact);
  const fields = {
    category,
    subject: [...new Set([firstLifeKey(id), ...statementKeys(fact, readStatement(fact.text))])],
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
  return { record, fact, statement: readStatement(fact.text), taken: new Set(taken), takenInOrder: taken, similarity };
}

/** Stays with a fact whose text is changed, so that its id is never given to another. */
function firstLifeKey(id: string): string {
  return `text:${id.split('.', 1)[0]}`;
}

const STATEMENTS_MAX = 4_000;
const statements = new Map<string, Statement>();

/** A statement taken apart; the last ones are remembered, since the same known facts are compared again and again. */
export function readStatement(text: string): Statement {
  const known = statements.get(text);
  if (known !== undefined) return known;
  if (statements.size >= STATEMENTS_MAX) statements.clear();
  const statement = statementOf(text);
  statements.set(text, statement);
  return statement;
}
