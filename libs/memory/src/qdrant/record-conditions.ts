import type { RecordFilter } from '../record-store.js';
import { RECORD_FIELDS } from '../record-store.js';
import { encodeText } from './exact-text.js';
import type { Condition } from './tenant-points.js';

/** What a filter lets through, of what the view of `TenantPoints` has. */
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
