import { type MemoryRecord, RECORD_FIELDS, type RecordFilter, type RecordKind, type StoredRecord } from '../record-store.js';
import { pointId } from './collections.js';
import { type Condition, NOBODY, type Payload } from './tenant-points.js';
import type { MemoryLayer } from '@etude/contracts/task';

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

/** Begins texts that are stored as JSON of themselves. */
const MARK = '\u0001';

/**
 * A text as Qdrant can keep it: JSON of the same in ASCII where it has half a surrogate pair, which Qdrant refuses, or begins
 * with our mark. Equal texts stay equal and different ones different, so it serves in filters too.
 */
export function encodeText(text: string): string {
  return text.isWellFormed() && !text.startsWith(MARK) ? text : MARK + JSON.stringify(text);
}

export function decodeText(stored: string): string {
  return stored.startsWith(MARK) ? (JSON.parse(stored.slice(MARK.length)) as string) : stored;
}

/** In the order of code points, which is that of the bytes in UTF-8. */
export function compareCodePoints(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i += 1) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** A filter as conditions of Qdrant; the view of `TenantPoints` is added to them. */
export function filterConditions(filter: RecordFilter): Condition[] {
  const { kinds, where = {}, shown, createdSince, createdBefore, worthMin } = filter;
  return [
    ...(kinds === undefined ? [] : [anyOf('kind', kinds)]),
    ...(shown === undefined ? [] : [is('shown', shown)]),
    ...RECORD_FIELDS.flatMap((field) => {
      const value = where[field];
      if (value === undefined) return [];
      return [anyOf(`f.${field}`, (typeof value === 'string' ? [value] : value).map(encodeText))];
    }),
    ...rangeOf('created_at', {
      ...(createdSince === undefined ? {} : { gte: createdSince }),
      ...(createdBefore === undefined ? {} : { lt: createdBefore }),
    }),
    ...rangeOf('worth', worthMin === undefined ? {} : { gte: worthMin }),
  ];
}

export function is(key: string, value: string | number | boolean): Condition {
  return { key, match: { value } };
}

/** Nothing meets it where there are no values. */
export function anyOf(key: string, values: readonly string[]): Condition {
  return values.length === 0 ? { has_id: [] } : { key, match: { any: values } };
}

/** JSON has no infinity, and without a bound it says nothing. */
function rangeOf(key: string, range: { gte?: number; lt?: number }): Condition[] {
  const bounded = Object.fromEntries(Object.entries(range).filter(([, value]) => Number.isFinite(value)));
  return Object.keys(bounded).length === 0 ? [] : [{ key, range: bounded }];
}
