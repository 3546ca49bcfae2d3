import { hasUnnameable, UNNAMEABLE } from '@etude/contracts/json';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { z } from 'zod';

/** Who calls a tool, and in which session. */
export interface ToolContext {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
  /** What todos and loaded functions belong to. */
  readonly session: string;
  /** One id per call; a call that is repeated has the same one, and what it does is done once. */
  readonly callId: string;
  /** Name of the key that the call came with, for histories. */
  readonly by: string;
  readonly settings: ProceduralMemorySettings;
}

/** What a tool says. On failure `result` may still hold what there is to see, such as what code printed before it failed. */
export type ToolOutcome<R = Readonly<Record<string, unknown>>> =
  | { readonly success: true; readonly result: R }
  | { readonly success: false; readonly error: string; readonly result?: Partial<R> };

/**
 * Something that an agent can do, in MCP's shape.
 *
 * `call` checks its arguments; wrong ones are a failure that names them. @throws EtudeError where it is nobody's doing but ours.
 */
export interface ToolDefinition {
  readonly name: string;
  readonly title: string;
  /** For a model; what it is told to do first depends on the agent's settings. */
  describe(settings: ProceduralMemorySettings): string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** JSON Schema of `result`. */
  readonly outputSchema: Readonly<Record<string, unknown>>;
  readonly readOnly: boolean;
  /** The same call again changes nothing more. */
  readonly idempotent: boolean;
  call(args: unknown, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome>;
}

export interface ToolSpec<I extends z.ZodObject, O extends z.ZodObject> extends Pick<
  ToolDefinition,
  'name' | 'title' | 'readOnly' | 'idempotent'
> {
  readonly description: string | ((settings: ProceduralMemorySettings) => string);
  readonly input: I;
  /** Of success and failure alike, so what only one of them has is optional. */
  readonly output: O;
  run(args: z.output<I>, context: ToolContext, signal: AbortSignal): Promise<ToolOutcome<z.input<O>>>;
}

/** A tool from two zod schemas: what is published and what is checked are one thing. */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(spec: ToolSpec<I, O>): ToolDefinition {
  const { name, title, description, input, output, readOnly, idempotent } = spec;
  return {
    name,
    title,
    readOnly,
    idempotent,
    describe: (settings) => (typeof description === 'string' ? description : description(settings)),
    inputSchema: z.toJSONSchema(input, { io: 'input' }),
    outputSchema: z.toJSONSchema(output, { io: 'output' }),
    async call(args, context, signal) {
      const unnameable = placeOfUnnameable(args ?? {});
      if (unnameable !== null) return { success: false, error: `Wrong arguments. "${unnameable}" is no name of an argument.` };
      const parsed = input.safeParse(args ?? {}, { reportInput: true });
      if (!parsed.success) return { success: false, error: wrongArguments(parsed.error, input) };
      const outcome = await spec.run(parsed.data, context, signal);
      if (outcome.success) return { success: true, result: output.parse(outcome.result) };
      const { error, result } = outcome;
      return result === undefined ? { success: false, error } : { success: false, error, result: output.partial().parse(result) };
    },
  };
}

/** Where an argument is named as none can be: of the tool, or of what it calls. */
function placeOfUnnameable(args: unknown): string | null {
  if (hasUnnameable(args)) return UNNAMEABLE;
  for (const [name, value] of Object.entries(args as object)) {
    if (hasUnnameable(value)) return `${name}.${UNNAMEABLE}`;
    const calls: readonly unknown[] = Array.isArray(value) ? value : [];
    const index = calls.findIndex((call) => typeof call === 'object' && call !== null && 'kwargs' in call && hasUnnameable(call.kwargs));
    if (index >= 0) return `${name}[${index}].kwargs.${UNNAMEABLE}`;
  }
  return null;
}

/** What an agent whose procedural memory is off is told, with the way to turn it on. null: it is on. */
export function skillsAreOff({ agent, settings }: Pick<ToolContext, 'agent' | 'settings'>): string | null {
  if (settings.enabled) return null;
  return (
    `Procedural memory is off for agent "${agent}", so skills are not searched, used or registered. A reviewer turns it on with ` +
    `"etude agents set ${agent} enabled=true" (UpdateAgent with procedural_memory_settings.enabled = true). execute_code works without it.`
  );
}

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
