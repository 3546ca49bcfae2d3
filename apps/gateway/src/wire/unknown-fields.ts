import { joinPath, snakeCase } from './field-path.js';
import type { Violation } from './validation.js';

interface Unknown {
  readonly no: number;
}

function* walk(value: unknown, path: string): Generator<Violation> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) yield* walk(entry, joinPath(path, index));
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
      yield* walk(oneof.value, joinPath(path, snakeCase(oneof.case)));
    else yield* walk(entry, joinPath(path, snakeCase(key)));
  }
}

/** Fields that this server does not know, anywhere in a request. Ignoring one could mean ignoring a limit that the caller set. */
export const unknownFields = (request: object): readonly Violation[] => [...walk(request, '')];
