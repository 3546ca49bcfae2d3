import type { IncomingMessage } from 'node:http';
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { parsedJson, parseExactJson } from '@etude/contracts/json';
import { invalidField } from '@etude/contracts/wire/validation';
import { mediaTypeOf, textOf } from './http-door.js';

/**
 * The request message of a call. The query overrides the body, and the path overrides both. "agent.name" in a path is a nested field.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the field
 */
export function messageOf<D extends DescMessage>(
  schema: D,
  body: JsonObject,
  query: URLSearchParams,
  path: Readonly<Record<string, string>>,
): MessageShape<D> {
  const json = { ...body, ...queryFields(schema, query) };
  for (const key of Object.keys(json)) fieldOf(schema, key);
  for (const [field, value] of Object.entries(path)) {
    const [first = '', second] = field.split('.');
    json[first] = second === undefined ? value : { ...(json[first] as JsonObject | undefined), [second]: value };
  }
  return decoded(schema, json);
}

/** @throws EtudeError INVALID_ARGUMENT */
export function decoded<D extends DescMessage>(schema: D, json: JsonObject): MessageShape<D> {
  try {
    return fromJson(schema, json);
  } catch (error) {
    const said = (error as Error).message.replace(/^cannot decode message \S+ from JSON: /, '');
    throw new EtudeError('INVALID_ARGUMENT', `The request is wrong: ${said}`);
  }
}

function fieldOf(schema: DescMessage, key: string): DescField {
  const field = schema.fields.find(({ name, jsonName }) => name === key || jsonName === key);
  if (field !== undefined) return field;
  throw invalidField(key, `is not a field of this call. Its fields are: ${schema.fields.map(({ name }) => name).join(', ')}`);
}

function queryFields(schema: DescMessage, query: URLSearchParams): JsonObject {
  const entries = [...new Set(query.keys())].map((name) => {
    const field = fieldOf(schema, name);
    const values = query.getAll(name).map((text) => valueOf(field, text));
    if (field.fieldKind !== 'list' && values.length > 1) throw invalidField(name, 'must be given only once');
    return [name, field.fieldKind === 'list' ? values : (values[0] ?? null)];
  });
  return Object.fromEntries(entries) as JsonObject;
}

/** Query values are text. Proto's JSON accepts numbers as text, but not booleans; maps are JSON. */
function valueOf(field: DescField, text: string): JsonValue {
  if (field.fieldKind === 'map') return mapOf(field, text);
  if (field.scalar !== ScalarType.BOOL) return text;
  if (text === 'true' || text === '') return true;
  if (text === 'false') return false;
  throw invalidField(field.name, 'must be true or false');
}

function mapOf({ name }: DescField, text: string): JsonValue {
  const value = parsedJson(text);
  if (value === undefined) throw invalidField(name, 'must be a JSON object, such as {"team": "a"}');
  return value as JsonValue;
}

/** @throws EtudeError PAYLOAD_TOO_LARGE; INVALID_ARGUMENT if the body isn't a JSON object, or can't be represented exactly */
export async function jsonOf(request: IncomingMessage, bytesMax: number): Promise<JsonObject> {
  const text = await textOf(request, bytesMax);
  if (text.trim() === '') return {};
  // A browser would let any web page send bodies of other types.
  if (mediaTypeOf(request) !== 'application/json')
    throw new EtudeError('INVALID_ARGUMENT', 'The body must be JSON, with content-type: application/json.');
  let json: unknown;
  try {
    json = parseExactJson(text);
  } catch (error) {
    if (error instanceof EtudeError) throw error;
    throw new EtudeError('INVALID_ARGUMENT', `The body is not JSON: ${(error as Error).message}`);
  }
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as JsonObject;
  throw new EtudeError('INVALID_ARGUMENT', 'The body must be a JSON object.');
}
