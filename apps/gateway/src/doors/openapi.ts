import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { headOf, type Place, type Route, ROUTES, shownPath } from './routes.js';
import { resourceSchemas } from './skill-resource-request.js';
import { RESOURCE_ROUTES, type ResourceRoute } from './skill-resources.js';

type Json = Record<string, unknown>;

export function openApi(provider: string): Json {
  const schemas: Record<string, Json> = {};
  const paths: Record<string, Json> = {};
  const add = (place: Place, operation: Json) => {
    const path = shownPath(place.path).replace('{provider}', provider);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({ name, in: 'path', required: true, schema: TEXT }));
    const parameters = [...inPath, ...((operation['parameters'] as Json[] | undefined) ?? [])];
    const described = { summary: place.summary, ...operation, ...(parameters.length > 0 ? { parameters } : {}) };
    paths[path] = { ...paths[path], [place.verb.toLowerCase()]: described };
  };
  for (const route of ROUTES) add(route, callOperation(route, schemas));
  for (const route of RESOURCE_ROUTES) add(route, resourceOperation(route));
  return {
    openapi: '3.1.0',
    info: { title: 'Etude', version: 'v1', description: 'The calls of etude.v1 as JSON over HTTP. Errors are named as in gRPC.' },
    security: [{ key: [] }],
    paths,
    components: {
      schemas: { ...schemas, ...resourceSchemas(), Error: ERROR },
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
    },
  };
}

const TEXT: Json = { type: 'string' };
const ERROR: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: TEXT,
        message: TEXT,
        fields: { type: 'array', items: { type: 'object', properties: { field: TEXT, description: TEXT } } },
      },
    },
  },
};

const referenceTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const jsonOf = (schema: Json): Json => ({ 'application/json': { schema } });
const FAILED: Json = { default: { description: 'The call failed.', content: jsonOf(referenceTo('Error')) } };
const LINES: Json = { 'application/x-ndjson': { schema: TEXT } };
const FILE: Json = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

function callOperation({ verb, path, method, body }: Route, schemas: Record<string, Json>): Json {
  const isFile = verb === 'POST' && (body === 'bytes' || body === 'archive');
  const asked = isFile ? headOf(method).message! : method.input;
  const isInPath = ({ name }: DescField) => shownPath(path).includes(`{${name}}`);
  const inQuery = verb === 'GET' || verb === 'DELETE' || isFile ? asked.fields.filter((field) => !isInPath(field)) : [];
  const sent = isFile ? FILE : body === 'lines' ? LINES : jsonOf(reference(method.input, schemas));
  const isStream = body === 'lines' && method.methodKind === 'server_streaming';
  const answer = reference(method.output, schemas);
  const isDownload = body === 'bytes' && !isFile;
  const content = isDownload ? FILE : isStream ? LINES : body === 'events' ? { 'text/event-stream': { schema: answer } } : jsonOf(answer);
  return {
    operationId: method.name,
    parameters: inQuery.map((field) => ({ name: field.name, in: 'query', schema: fieldSchema(field, schemas) })),
    ...(verb === 'POST' || verb === 'PATCH' ? { requestBody: { content: sent } } : {}),
    responses: { 200: { description: 'The call succeeded.', content }, ...FAILED },
  };
}

const READER: Json = {
  name: 'agent_object_id',
  in: 'query',
  description: 'The agent that reads its own skills and shared skills. If absent, skills of all agents of the tenant are read.',
  schema: TEXT,
};

function resourceOperation({ id, hasReader = false, sends, answers }: ResourceRoute): Json {
  const worked = Object.entries(answers).map(([status, schema]) => {
    const content = schema === null ? {} : { content: jsonOf(referenceTo(schema)) };
    return [status, { description: status === '201' ? 'The skill was created.' : 'The call succeeded.', ...content }];
  });
  return {
    operationId: id,
    parameters: hasReader ? [READER] : [],
    ...(sends === undefined ? {} : { requestBody: { required: true, content: jsonOf(referenceTo(sends)) } }),
    responses: { ...(Object.fromEntries(worked) as Json), ...FAILED },
  };
}

const WELL_KNOWN: Readonly<Record<string, Json>> = {
  'google.protobuf.Duration': { type: 'string', description: 'seconds, such as "1.5s"' },
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Struct': { type: 'object' },
  'google.protobuf.Value': {},
  'google.protobuf.ListValue': { type: 'array', items: {} },
  'google.protobuf.FieldMask': { type: 'string', description: 'names of fields, separated by commas' },
};

function reference(message: DescMessage, schemas: Record<string, Json>): Json {
  const known = WELL_KNOWN[message.typeName];
  if (known) return known;
  if (!(message.name in schemas)) {
    // Registered before its fields, because a message may contain itself.
    schemas[message.name] = {};
    const properties = Object.fromEntries(message.fields.map((field) => [field.name, fieldSchema(field, schemas)]));
    schemas[message.name] = { type: 'object', properties };
  }
  return referenceTo(message.name);
}

function fieldSchema(field: DescField, schemas: Record<string, Json>): Json {
  const { message, enum: names, scalar, fieldKind } = field;
  const scalarSchema = SCALARS[scalar ?? ScalarType.STRING] ?? TEXT;
  const named = names && { type: 'string', enum: names.values.map(({ name }) => name) };
  const element = message ? reference(message, schemas) : (named ?? scalarSchema);
  if (fieldKind === 'list') return { type: 'array', items: element };
  return fieldKind === 'map' ? { type: 'object', additionalProperties: element } : element;
}

const SCALARS: Readonly<Partial<Record<ScalarType, Json>>> = {
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.INT32]: { type: 'integer', format: 'int32' },
  [ScalarType.INT64]: { type: 'string', format: 'int64' },
  [ScalarType.DOUBLE]: { type: 'number' },
  [ScalarType.BYTES]: { type: 'string', format: 'byte' },
};
