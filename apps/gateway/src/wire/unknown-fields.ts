import { joinPath, snakeCase } from './field-path.js';
import type { Violation } from './validation.js';

const SHOWN_CHARS_MAX = 200;

interface Unknown {
  readonly no: number;
}

/** Of values in values; whatever walks a request later may take so many for granted. */
export const NESTING_MAX = 100;

function* walk(value: unknown, path: string, depth = 0): Generator<Violation> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  if (depth > NESTING_MAX) {
    yield { field: path.slice(0, SHOWN_CHARS_MAX), description: `is nested deeper than ${NESTING_MAX} values` };
    return;
  }
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) yield* walk(entry, joinPath(path, index), depth + 1);
    return;
  }
  const message = value as { $unknown?: readonly Unknown[] };
  for (const { no } of message.$unknown ?? []) {
    yield { field: path || '(request)', description: `has the unknown field number ${no}; leave it out, or use a server that knows it` };
  }
  for (const [key, entry] of Object.entries(value)) {
    if (key === '$unknown' || key === '$typeName') continue;
    const oneof = entry as { case?: unknown; value?: unknown } | null;
    if (typeof oneof === 'object' && oneof !== null && typeof oneof.case === 'string')
      yield* walk(oneof.value, joinPath(path, snakeCase(oneof.case)), depth + 1);
    else yield* walk(entry, joinPath(path, snakeCase(key)), depth + 1);
  }
}

/** Fields that this server does not know, anywhere in a request, and values that are nested too deep. Ignoring one could mean ignoring a limit that the caller set. */
export const unknownFields = (request: object): readonly Violation[] => [...walk(request, '')];
