import type { MemoryLayer } from '@etude/contracts/task';
import type { MemoryRecord, RecordKind, StoredRecord } from '../record-store.js';
import { RECORD_FIELDS } from '../record-store.js';
import { decodeText, encodeText } from './exact-text.js';
import { pointId } from './point-ids.js';
import { NOBODY, type Payload } from './tenant-points.js';

/** A body that is too long for one point is kept in several; `set` names those that belong together. */
export interface PartSet {
  readonly set: string;
  readonly count: number;
  readonly digest: string;
}

export const recordId = (tenant: string, kind: RecordKind, key: string): string => pointId(tenant, kind, key);

/**
 * Everything of a record but its content and revision: what filters look at, and what a candidate needs. Absent values are
 * null, which takes away what an earlier revision had.
 */
export function ownerPayload(record: MemoryRecord): Payload {
  const { kind, key, scope, createdAt, worth, shown, fields } = record;
  const f = Object.fromEntries(
    RECORD_FIELDS.flatMap((field) => {
      const value = fields[field];
      if (value === undefined) return [];
      return [[field, typeof value === 'string' ? encodeText(value) : value.map(encodeText)]];
    }),
  );
  return { kind, key: encodeText(key), agent: scope.agent, user: scope.user ?? NOBODY, created_at: createdAt, worth, shown, f };
}

/** A record as text, in two parts: JSON of all but the body, in one line, then the body as it is. */
export function contentOf({ body, ...rest }: MemoryRecord): string {
  return encodeText(`${JSON.stringify(rest)}\n${body}`);
}

export function recordOf(content: string, revision: number): StoredRecord {
  const text = decodeText(content);
  const end = text.indexOf('\n');
  return { ...(JSON.parse(text.slice(0, end)) as Omit<MemoryRecord, 'body'>), body: text.slice(end + 1), revision };
}

/** How many writers a point remembers by their marks; see `markOf`. */
const MARKS = 8;
const MARK_NAMES = Array.from({ length: MARKS }, (_, i) => `by${i}`);
/** What says who wrote a point, and which. */
export const STATE = ['revision', 'parts', ...MARK_NAMES] as const;

/**
 * The writer of a revision leaves its mark in a place that is used again eight revisions later, so that it finds out that it
 * was the one even when others wrote since.
 */
export function markOf(revision: number, writer: string): Payload {
  return { [`by${revision % MARKS}`]: writer };
}

export function hasMark(payload: Payload, revision: number, writer: string): boolean {
  return payload[`by${revision % MARKS}`] === writer;
}

export function marksIn(payload: Payload): Payload {
  return Object.fromEntries(MARK_NAMES.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}

export function revisionIn(payload: Payload): number {
  return typeof payload['revision'] === 'number' ? payload['revision'] : 0;
}

export function partsIn(payload: Payload): PartSet | null {
  return (payload['parts'] as PartSet | undefined) ?? null;
}

export type RecordPlace = Pick<MemoryRecord, 'kind' | 'key'> & { readonly layer: MemoryLayer };
