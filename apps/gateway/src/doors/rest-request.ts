import type { IncomingMessage } from 'node:http';
import { type DescField, type DescMessage, fromJson, type JsonObject, type JsonValue, type Message, ScalarType } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { parseExactJson } from '@etude/contracts/json';
import { limitsOf } from '../calls/request-limits.js';
import { invalidField, refuseAny } from '../wire/validation.js';
import { isDeeperThan } from './body-reader.js';
import { mediaTypeOf } from './http-door.js';

/** Of lists and objects in a body; decoders of messages go no deeper. */
const NESTING_MAX = 100;

/**
 * The request message of a call: what the body says, then the query, then the path.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the field
 */
export function messageOf(schema: DescMessage, body: JsonObject, query: URLSearchParams, path: Readonly<Record<string, string>>): Message {
  refuseUnknown(schema, body);
  const json = withPath({ ...body, ...queryFields(schema, query) }, path);
  refuseLong(schema, json);
  try {
    return fromJson(schema, json);
  } catch (error) {
    const said = error instanceof Error ? error.message.replace(/^cannot decode message \S+ from JSON: /, '') : String(error);
    throw new EtudeError('INVALID_ARGUMENT', `The request is wrong: ${said}`);
  }
}

/** What the path says goes before all else; "agent.name" is a field of a field. */
function withPath(json: JsonObject, path: Readonly<Record<string, string>>): JsonObject {
  const all: JsonObject = { ...json };
  for (const [field, value] of Object.entries(path)) {
    const [first = '', second] = field.split('.');
    const inner = all[first];
    const known = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {};
    all[first] = second === undefined ? value : { ...known, [second]: value };
  }
  return all;
}

const namesOf = (schema: DescMessage) => schema.fields.map(({ name }) => name).join(', ');
const fieldOf = (schema: DescMessage, key: string) => schema.fields.find(({ name, jsonName }) => name === key || jsonName === key);

function refuseUnknown(schema: DescMessage, body: JsonObject): void {
  const unknown = Object.keys(body).filter((key) => fieldOf(schema, key) === undefined);
  refuseAny(unknown.map((field) => ({ field, description: `is no field of this call; it has: ${namesOf(schema)}` })));
}

/** Before every entry becomes an object. */
function refuseLong(schema: DescMessage, json: JsonObject): void {
  const { entriesMax } = limitsOf(schema.name.replace(/Request$/, ''));
  for (const [key, value] of Object.entries(json)) {
    const name = fieldOf(schema, key)?.name ?? key;
    const max = entriesMax[name];
    if (max !== undefined && Array.isArray(value) && value.length > max)
      throw invalidField(name, `must not have more than ${max} entries; it has ${value.length}`);
  }
}

function queryFields(schema: DescMessage, query: URLSearchParams): JsonObject {
  const fields: JsonObject = {};
  for (const name of new Set(query.keys())) {
    const field = schema.fields.find((one) => one.name === name);
    if (!field) throw invalidField(name, `is no field of this call; it has: ${namesOf(schema)}`);
    const values = query.getAll(name).map((text) => valueOf(field, text));
    if (field.fieldKind !== 'list' && values.length > 1) throw invalidField(name, 'is given more than once');
    fields[name] = field.fieldKind === 'list' ? values : (values[0] ?? null);
  }
  return fields;
}

/** Everything in a query is text; proto's JSON reads numbers from text, and booleans not. */
function valueOf(field: DescField, text: string): JsonValue {
  if (field.scalar !== ScalarType.BOOL) return text;
  if (text === 'true' || text === '') return true;
  if (text === 'false') return false;
  throw invalidField(field.name, 'must be true or false');
}

/** @throws EtudeError INVALID_ARGUMENT for what is no JSON object, is nested too deep, or can't be taken as it is written */
export function jsonOf(request: IncomingMessage, body: Buffer): JsonObject {
  const text = textOf(body);
  if (text.trim() === '') return {};
  // Another type could be sent by any page that a browser shows.
  if (mediaTypeOf(request) !== 'application/json')
    throw new EtudeError('INVALID_ARGUMENT', 'The body must be JSON, with content-type: application/json.');
  if (isDeeperThan(text, NESTING_MAX)) {
    throw new EtudeError('INVALID_ARGUMENT', `The body is nested deeper than ${NESTING_MAX} lists and objects; make it flatter.`);
  }
  let json: unknown;
  try {
    json = parseExactJson(text);
  } catch (error) {
    if (error instanceof EtudeError) throw error;
    throw new EtudeError('INVALID_ARGUMENT', `The body is not JSON: ${(error as Error).message}`);
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new EtudeError('INVALID_ARGUMENT', 'The body must be a JSON object.');
  }
  return json as JsonObject;
}

/** @throws EtudeError INVALID_ARGUMENT for what is not UTF-8 */
export function textOf(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new EtudeError('INVALID_ARGUMENT', 'The body is not UTF-8 text.');
  }
}
