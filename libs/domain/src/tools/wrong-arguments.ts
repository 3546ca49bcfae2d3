import { z } from 'zod';

const SHOWN_MAX = 5;
const NOUNS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};
/** What a value that is not there is called by, by the kind of its schema. */
const MISSING: ReadonlySet<string> = new Set(['invalid_type', 'invalid_union', 'invalid_value']);

/** What is wrong with a tool's arguments, for the model that wrote them: each by its name, with what it should have been. */
export function wrongArguments({ issues }: z.ZodError, input: z.ZodObject): string {
  const shown = issues.slice(0, SHOWN_MAX).flatMap((issue) => sentences(issue, input));
  const more = issues.length > SHOWN_MAX ? ` And ${issues.length - SHOWN_MAX} more.` : '';
  return `Wrong arguments. ${shown.join(' ')}${more}`;
}

function sentences(issue: z.core.$ZodIssue, input: z.ZodObject): string[] {
  if (issue.code === 'unrecognized_keys') {
    const known = issue.path.length === 0 ? `; the arguments are: ${Object.keys(input.shape).join(', ')}` : '';
    return issue.keys.map((key) => `"${pathOf([...issue.path, key])}" is not known${known}.`);
  }
  return [`"${pathOf(issue.path) || 'arguments'}" ${complaint(issue)}${fieldsText(issue, input)}.`];
}

/** Of an object that was expected, those it needs; '' where something else was, or where that is not told by its schema. */
function fieldsText(issue: z.core.$ZodIssue, input: z.ZodObject): string {
  if (issue.code !== 'invalid_type' || issue.expected !== 'object' || issue.input === undefined) return '';
  const { required = [] } = schemaAt(z.toJSONSchema(input, { io: 'input' }), issue.path) ?? {};
  return required.length === 0 ? '' : ` with ${required.map((name) => `"${name}"`).join(' and ')}`;
}

/** Of what lies at this place of an argument. */
function schemaAt(schema: z.core.JSONSchema.BaseSchema, path: readonly PropertyKey[]): z.core.JSONSchema.BaseSchema | null {
  let at: unknown = schema;
  for (const step of path) {
    const { items, properties } = at as z.core.JSONSchema.BaseSchema;
    at = typeof step === 'number' ? items : properties?.[String(step)];
    if (typeof at !== 'object' || at === null || Array.isArray(at)) return null;
  }
  return at as z.core.JSONSchema.BaseSchema;
}

function complaint(issue: z.core.$ZodIssue): string {
  if (issue.input === undefined && MISSING.has(issue.code)) return 'is missing';
  if (issue.code === 'invalid_union') return unionComplaint(issue);
  if (issue.code === 'invalid_type') return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${unitOf(issue.origin)}`;
  if (issue.code === 'too_small')
    return issue.minimum === 1 && issue.origin !== 'number'
      ? 'must not be empty'
      : `must be at least ${issue.minimum}${unitOf(issue.origin)}`;
  return issue.message;
}

/** What each of the shapes that it may have would take. */
function unionComplaint({ errors, message }: z.core.$ZodIssueInvalidUnion): string {
  const complaints = errors.flatMap((issues) => issues.slice(0, 1)).map(complaint);
  return complaints.length === 0 ? message : [...new Set(complaints)].join(', or ');
}

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' entries long' : '';
}

const pathOf = (path: readonly PropertyKey[]): string =>
  path.map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at === 0 ? '' : '.'}${String(step)}`)).join('');
