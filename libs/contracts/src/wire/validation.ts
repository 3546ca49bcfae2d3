import { z } from 'zod';
import { EtudeError } from '../errors.js';

export interface Violation {
  readonly field: string;
  readonly description: string;
}

const SHOWN_MAX = 5;

/** INVALID_ARGUMENT with all violations; the message shows the first few. */
export function invalid(violations: readonly Violation[]): EtudeError {
  const shown = violations.slice(0, SHOWN_MAX).map(({ field, description }) => `${field}: ${description}`);
  const more = violations.length > SHOWN_MAX ? `; and ${violations.length - SHOWN_MAX} more` : '';
  return new EtudeError('INVALID_ARGUMENT', `The request is wrong. ${shown.join('; ')}${more}`, { violations });
}

export const invalidField = (field: string, description: string) => invalid([{ field, description }]);

/** @throws EtudeError INVALID_ARGUMENT if there are violations */
export function refuseAny(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalid(violations);
}

export function unwrapped(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in as z.ZodType);
  const isWrapper = [z.ZodDefault, z.ZodPrefault, z.ZodOptional, z.ZodNullable].some((wrapper) => schema instanceof wrapper);
  return isWrapper ? unwrapped((schema as z.ZodOptional<z.ZodType>).unwrap()) : schema;
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** Describes an issue of zod in a sentence, unless the schema has its own message. */
export const inSentences: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'too_big' || issue.code === 'too_small') return boundOf(issue);
  if (issue.code === 'invalid_value') return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
  if (issue.code === 'invalid_type') return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
  return issue.code === 'invalid_format' && 'pattern' in issue ? `must match ${String(issue.pattern)}` : undefined;
};

function boundOf(issue: z.core.$ZodRawIssue<z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall>): string {
  const [word, bound] = issue.code === 'too_big' ? ['most', issue.maximum] : ['least', issue.minimum];
  const unit = { string: ' characters', array: ' entries' }[issue.origin as string];
  if (unit === undefined) return `must be at ${word} ${bound}${String(issue.path?.at(-1) ?? '').endsWith('Ms') ? ' ms' : ''}`;
  return word === 'least' && Number(bound) === 1 ? 'must not be empty' : `must have at ${word} ${bound}${unit}`;
}

/** @param fieldOf gives the path of an issue as the caller wrote it */
export function parsedBy<S extends z.ZodType>(
  schema: S,
  value: unknown,
  fieldOf: (path: readonly PropertyKey[]) => string,
): { readonly data?: z.output<S>; readonly violations: readonly Violation[] } {
  const parsed = schema.safeParse(value, { error: inSentences });
  if (parsed.success) return { data: parsed.data, violations: [] };
  const found = parsed.error.issues.map(({ path, message }) => ({ field: fieldOf(path), description: message }));
  // Reports only the first violation of each field.
  return { violations: found.filter(({ field }, index) => found.findIndex((one) => one.field === field) === index) };
}

/** @throws EtudeError INVALID_ARGUMENT naming the field */
export function parseField<S extends z.ZodType>(schema: S, value: unknown, field: string): z.output<S> {
  const { data, violations } = parsedBy(schema, value, (path) =>
    path.reduce<string>((at, key) => joinPath(at, typeof key === 'number' ? key : snakeCase(String(key))), field),
  );
  refuseAny(violations);
  return data as z.output<S>;
}

/** Splits an upload into its first message, which must have the part `name`, and the rest. @throws EtudeError INVALID_ARGUMENT */
export async function opened<R extends { part: { case?: string | undefined; value?: unknown } }, N extends R['part']['case'] & string>(
  requests: AsyncIterable<R>,
  name: N,
) {
  const rest = requests[Symbol.asyncIterator]();
  const first = await rest.next();
  if (first.done || first.value.part.case !== name) throw invalidField(name, 'is required in the first message of an upload');
  return { head: first.value.part.value as Extract<R['part'], { case: N }>['value'], rest: { [Symbol.asyncIterator]: () => rest } };
}

/** Returns the default for zero. Refuses negative values and those above `max`. */
export function boundedCount(value: number, field: string, { max, standard }: { max: number; standard: number }): number {
  if (value === 0) return standard;
  if (value > 0 && value <= max) return value;
  throw invalidField(field, `must be between 1 and ${max}, or 0 for the default of ${standard}, but is ${value}`);
}

export const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

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
  const { $unknown = [], $typeName: _type, ...fields } = value as { $unknown?: ReadonlyArray<{ readonly no: number }>; $typeName?: string };
  for (const { no } of $unknown)
    yield { field: path || '(request)', description: `has the unknown field number ${no}; leave it out, or use a server that knows it` };
  for (const [key, entry] of Object.entries(fields)) {
    const oneof = entry as { case?: unknown; value?: unknown } | null;
    if (typeof oneof === 'object' && typeof oneof?.case === 'string') yield* walk(oneof.value, joinPath(path, snakeCase(oneof.case)));
    else yield* walk(entry, joinPath(path, snakeCase(key)));
  }
}

/** Refuses fields that this server doesn't know, which could be limits that the caller set. @throws EtudeError INVALID_ARGUMENT */
export function refuseUnknown(request: object): object {
  refuseAny([...walk(request, '')]);
  return request;
}
