import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';

export interface Violation {
  readonly field: string;
  readonly description: string;
}

const SHOWN_MAX = 5;

/** INVALID_ARGUMENT that names every wrong field. */
export function invalid(violations: readonly Violation[]): EtudeError {
  const shown = violations.slice(0, SHOWN_MAX).map(({ field, description }) => `${field}: ${description}`);
  const more = violations.length > SHOWN_MAX ? `; and ${violations.length - SHOWN_MAX} more` : '';
  return new EtudeError('INVALID_ARGUMENT', `The request is wrong. ${shown.join('; ')}${more}`, { violations });
}

export const invalidField = (field: string, description: string) => invalid([{ field, description }]);

/** @throws EtudeError INVALID_ARGUMENT where the list is not empty */
export function refuseAny(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalid(violations);
}

/** A schema without the defaults and transforms around it. */
export function unwrapped(schema: z.ZodType): z.ZodType {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable
  ) {
    return unwrapped(schema.unwrap() as z.ZodType);
  }
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in as z.ZodType);
  return schema;
}

/** The schema of an object's field, whatever defaults are around both. */
function fieldSchema(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  let at: z.ZodType | undefined = unwrapped(schema);
  for (const key of path) {
    const shape: Record<string, z.ZodType> | undefined = at instanceof z.ZodObject ? at.shape : undefined;
    const next: z.ZodType | undefined = shape?.[String(key)];
    if (!next) return undefined;
    at = unwrapped(next);
  }
  return at;
}

const isInteger = (value: number | null | undefined): value is number =>
  typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER;

/** "must be between 1 and 100", from the schema itself; null where it isn't a bounded number. */
function allowedRange(schema: z.ZodType, path: readonly PropertyKey[], show: (value: number) => string): string | null {
  const number = fieldSchema(schema, path);
  if (!(number instanceof z.ZodNumber)) return null;
  const { minValue, maxValue } = number;
  if (isInteger(minValue) && isInteger(maxValue))
    return `must be between ${show(minValue)} and ${show(maxValue)}${minValue > 0 ? ' (0 means the default)' : ''}`;
  return isInteger(minValue) ? `must be at least ${show(minValue)}` : null;
}

const milliseconds = (value: number) => (value % 1_000 === 0 ? `${value / 1_000} s` : `${value} ms`);

function describe(issue: z.core.$ZodIssue, schema: z.ZodType): string {
  const last = String(issue.path.at(-1) ?? '');
  const range = allowedRange(schema, issue.path, last.endsWith('Ms') ? milliseconds : String);
  if (range) return range;
  if (issue.code === 'too_big' && issue.origin === 'string') return `must not be longer than ${issue.maximum} characters`;
  if (issue.code === 'too_big' && issue.origin === 'array') return `must not have more than ${issue.maximum} entries`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
  return ownWords(issue);
}

/** Where the schema says it in words of its own, those; else what zod knows about it, as a sentence. */
function ownWords(issue: z.core.$ZodIssue): string {
  if (!RAW_MESSAGE.test(issue.message)) return issue.message;
  if (issue.code === 'too_small' && issue.origin === 'string')
    return issue.minimum === 1 ? EMPTY : `must have at least ${issue.minimum} characters`;
  if (issue.code === 'too_small' && issue.origin === 'array')
    return issue.minimum === 1 ? EMPTY : `must have at least ${issue.minimum} entries`;
  if (issue.code === 'invalid_type') return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_format' && 'pattern' in issue) return `must match ${String(issue.pattern)}`;
  return issue.message;
}

const EMPTY = 'must not be empty';
/** How zod begins what no schema said. */
const RAW_MESSAGE = /^(?:Too small|Too big|Invalid |Unrecognized )/;
const NOUNS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** One violation per issue of zod. @param fieldOf the path of an issue, as the caller wrote it */
export function violationsOf(
  error: z.ZodError,
  schema: z.ZodType,
  fieldOf: (path: readonly PropertyKey[]) => string,
): readonly Violation[] {
  const found = error.issues.map((issue) => ({ field: fieldOf(issue.path), description: describe(issue, schema) }));
  // A number can break two rules at once; the range says both. What is empty breaks every rule, and the first says so.
  return found.filter(({ field, description }, index) => {
    const first = found.findIndex((one) => one.field === field && (one.description === description || one.description === EMPTY));
    return first === -1 || first >= index;
  });
}

const below = (root: string) => (path: readonly PropertyKey[]) =>
  path.reduce<string>((at, key) => joinPath(at, typeof key === 'number' ? key : snakeCase(String(key))), root);

/** Parses one field of a request. @throws EtudeError INVALID_ARGUMENT naming it */
export function parseField<S extends z.ZodType>(schema: S, value: unknown, field: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(violationsOf(parsed.error, schema, below(field)));
}

/** Zero is the default; negative or over `max` is refused. */
export function boundedCount(value: number, field: string, { max, standard }: { max: number; standard: number }): number {
  if (value === 0) return standard;
  if (value < 0 || value > max)
    throw invalidField(field, `must be between 1 and ${max}, or 0 for the default of ${standard}; it is ${value}`);
  return value;
}

/** `attemptsMax` to `attempts_max`. */
export const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Path of a field as the caller wrote it: `spec.evaluator.io_cases.cases[3].stdin`. */
export function joinPath(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`;
  return parent ? `${parent}.${key}` : key;
}

function* walk(value: unknown, path: string): Generator<Violation> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) yield* walk(entry, joinPath(path, index));
    return;
  }
  const message = value as { $unknown?: ReadonlyArray<{ readonly no: number }> };
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

/**
 * A request without fields that this server does not know. Ignoring one could mean ignoring a limit that the caller set.
 *
 * @throws EtudeError INVALID_ARGUMENT
 */
export function refuseUnknown(request: object): object {
  refuseAny([...walk(request, '')]);
  return request;
}
