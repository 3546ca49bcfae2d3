import { isDeeper, type Json, JsonObject } from '@etude/contracts/json';
import type { OutsideOutcome, OutsideTool } from '@etude/contracts/outside-tools';
import type { CallToolResult, Tool } from '@modelcontextprotocol/client';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import { z } from 'zod';

const DESCRIPTION_MAX_CHARS = 1_000;
const SCHEMA_MAX_BYTES = 64 * 1024;
const RESULT_MAX_CHARS = 100_000;
const ERROR_MAX_CHARS = 2_000;
const DEPTH_MAX = 50;

const Schema = JsonObject.refine(({ type }) => type === 'object', 'must describe an object')
  .refine((schema) => !isDeeper(schema, DEPTH_MAX), `must have at most ${DEPTH_MAX} levels`)
  .refine((schema) => Buffer.byteLength(JSON.stringify(schema)) <= SCHEMA_MAX_BYTES, `must take at most ${SCHEMA_MAX_BYTES} bytes`);

const Told = z.object({
  name: z.string().regex(/^[A-Za-z0-9_./-]{1,128}$/, 'must hold only letters, digits, "_", ".", "/" and "-"'),
  description: z.string().optional(),
  inputSchema: Schema,
  outputSchema: Schema.optional(),
});

export interface CheckedTool extends OutsideTool {
  /** For the protocol's client, which checks structured results. */
  readonly definition: Tool;
  readonly problemOf: (args: unknown) => string | null;
}

const VALIDATOR = new AjvJsonSchemaValidator();

const isHarmful = (key: string, value: unknown) =>
  key === 'patternProperties' || (['pattern', '$id', '$async', 'uniqueItems'].includes(key) && typeof value !== 'object');

/**
 * A copy of a schema without keywords that could harm this process: a pattern may take forever, and ids are global to the validator. A
 * property with such a name stays, since its value is an object.
 */
function harmless<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) => (isHarmful(key, value) ? undefined : value)) as T;
}

/** References can make a check take forever. So arguments for a schema with references are checked only by the server. */
const hasReferences = (schema: Json) => /"\$(?:ref|dynamicRef)":/.test(JSON.stringify(schema));

/** @throws Error saying why the tool can't be used */
export function checkedTool(server: string, told: unknown): CheckedTool {
  const { data, error } = Told.safeParse(told);
  if (!data) throw new Error(`${error.issues[0]?.path.join('.')} ${error.issues[0]?.message}`);
  const { name, description = '', inputSchema, outputSchema } = data;
  const checked = hasReferences(inputSchema) ? { type: 'object' } : inputSchema;
  const result = outputSchema === undefined || hasReferences(outputSchema) ? undefined : outputSchema;
  const definition = harmless({ name, inputSchema: checked, ...(result ? { outputSchema: result } : {}) }) as Tool;
  const validate = VALIDATOR.getValidator(definition.inputSchema as never);
  if (result) VALIDATOR.getValidator(definition.outputSchema as never);
  return {
    name: `${server}/${name}`,
    description: description.slice(0, DESCRIPTION_MAX_CHARS).toWellFormed(),
    inputSchema,
    definition,
    problemOf: (args) => validate(args).errorMessage ?? null,
  };
}

export const failure = (error: string): OutsideOutcome => ({ untrusted: true, success: false, error: cut(error, ERROR_MAX_CHARS) });

export function outcomeOf({ content, structuredContent, isError }: CallToolResult): OutsideOutcome {
  const text = content.map(textOf).join('\n');
  if (isError === true) return failure(text || 'the tool failed without saying why');
  const structured = structuredContent as Json | undefined;
  const isUsable = structured !== undefined && !isDeeper(structured, DEPTH_MAX) && JSON.stringify(structured).length <= RESULT_MAX_CHARS;
  const shown = structured === undefined ? text : JSON.stringify(structured);
  return { untrusted: true, success: true, result: isUsable ? structured : cut(shown, RESULT_MAX_CHARS) };
}

function textOf(part: CallToolResult['content'][number]): string {
  if (part.type === 'text') return part.text;
  if (part.type === 'resource_link') return `[link to ${part.uri}]`;
  if (part.type !== 'resource') return `[${part.mimeType}, ${Buffer.byteLength(part.data, 'base64')} bytes]`;
  const { resource } = part;
  const bytes = 'text' in resource ? Buffer.byteLength(resource.text) : Buffer.byteLength(resource.blob, 'base64');
  return `[${resource.mimeType ?? 'resource'}, ${bytes} bytes]`;
}

function cut(text: string, chars: number): string {
  const whole = text.toWellFormed();
  return whole.length <= chars ? whole : `${whole.slice(0, chars).toWellFormed()} [${whole.length - chars} more characters were cut]`;
}
