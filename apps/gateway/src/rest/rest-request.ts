import type { IncomingMessage } from 'node:http';
import { type DescField, type DescMessage, fromJson, type JsonObject, type JsonValue, type Message, ScalarType } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { invalidField } from '../wire/validation.js';

/** Of a JSON body; a call of gRPC may have as much. */
const BODY_MAX_BYTES = 15 * 1024 * 1024;

/**
 * The request message of a call: what the body says, then the query, then the path.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the field
 */
export function messageOf(schema: DescMessage, body: JsonObject, query: URLSearchParams, path: Readonly<Record<string, string>>): Message {
  const json: JsonObject = { ...body, ...queryFields(schema, query), ...path };
  try {
    return fromJson(schema, json);
  } catch (error) {
    const said = error instanceof Error ? error.message.replace(/^cannot decode message \S+ from JSON: /, '') : String(error);
    throw new EtudeError('INVALID_ARGUMENT', `The request is wrong: ${said}`);
  }
}

function queryFields(schema: DescMessage, query: URLSearchParams): JsonObject {
  const fields: JsonObject = {};
  for (const name of new Set(query.keys())) {
    const field = schema.fields.find((one) => one.name === name);
    if (!field) throw invalidField(name, `is no field of this call; it has: ${schema.fields.map((one) => one.name).join(', ')}`);
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

/** @throws EtudeError INVALID_ARGUMENT, PAYLOAD_TOO_LARGE */
export async function readJson(request: IncomingMessage): Promise<JsonObject> {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim();
  const text = await readText(request);
  if (text.trim() === '') return {};
  // Another type could be sent by any page that a browser shows.
  if (type !== 'application/json') throw new EtudeError('INVALID_ARGUMENT', 'The body must be JSON, with content-type: application/json.');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `The body is not JSON: ${(error as Error).message}`);
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new EtudeError('INVALID_ARGUMENT', 'The body must be a JSON object.');
  }
  return json as JsonObject;
}

/** @throws EtudeError INVALID_ARGUMENT for what is not UTF-8, PAYLOAD_TOO_LARGE */
export async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > BODY_MAX_BYTES) throw new EtudeError('PAYLOAD_TOO_LARGE', `The body may have ${BODY_MAX_BYTES} bytes; send less at once.`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new EtudeError('INVALID_ARGUMENT', 'The body is not UTF-8 text.');
  }
}
