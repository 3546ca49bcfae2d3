import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type Route, ROUTES, shownPath } from './routes.js';
import { resourcePaths } from './skill-resource-openapi.js';
import { resourceSchemas } from './skill-resource-request.js';

type Json = Record<string, unknown>;

/** The routes as OpenAPI 3.1, made from the descriptors of the calls, so that it can't say anything else than they do. */
export function openApi(provider: string): Json {
  const schemas: Record<string, Json> = {};
  const paths: Record<string, Json> = {};
  for (const route of ROUTES) {
    const shown = shownPath(route.path);
    paths[shown] = { ...paths[shown], [route.verb.toLowerCase()]: operation(route, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Etude', version: 'v1', description: 'The calls of etude.v1 as JSON over HTTP. Errors are named as in gRPC.' },
    security: [{ key: [] }],
    paths: { ...paths, ...resourcePaths(provider) },
    components: {
      schemas: { ...schemas, ...resourceSchemas(), Error: ERROR },
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
    },
  };
}

const ERROR: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        fields: {
          type: 'array',
          items: { type: 'object', properties: { field: { type: 'string' }, description: { type: 'string' } } },
        },
      },
    },
  },
};

function operation({ verb, path, method, summary, body }: Route, schemas: Record<string, Json>): Json {
  const inPath = [...shownPath(path).matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
  const isFile = body === 'bytes' || body === 'archive';
  const asked = isFile ? (method.input.fields.find(({ name }) => name === 'head')?.message ?? method.input) : method.input;
  const inQuery = verb === 'GET' || verb === 'DELETE' || isFile ? asked.fields.filter(({ name }) => !inPath.includes(name)) : [];
  const parameters = [
    ...inPath.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...inQuery.map((field) => ({ name: field.name, in: 'query', schema: fieldSchema(field, schemas) })),
  ];
  return {
    operationId: method.name,
    summary,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(verb === 'POST' || verb === 'PATCH' ? { requestBody: { content: requestContent({ method, body }, schemas) } } : {}),
    responses: {
      200: { description: 'It worked.', content: answerContent({ method, body }, schemas) },
      default: { description: 'It did not.', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    },
  };
}

function requestContent({ method, body }: Pick<Route, 'method' | 'body'>, schemas: Record<string, Json>): Json {
  if (body === 'bytes' || body === 'archive') return { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
  if (body === 'lines') return { 'application/x-ndjson': { schema: { type: 'string' } } };
  return { 'application/json': { schema: reference(method.input, schemas) } };
}

function answerContent({ method, body }: Pick<Route, 'method' | 'body'>, schemas: Record<string, Json>): Json {
  if (body === 'lines' && method.methodKind === 'server_streaming') return { 'application/x-ndjson': { schema: { type: 'string' } } };
  return { 'application/json': { schema: reference(method.output, schemas) } };
}

const WELL_KNOWN: Readonly<Record<string, Json>> = {
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
    // Before its fields, since a message may hold itself.
    schemas[message.name] = {};
    const properties = Object.fromEntries(message.fields.map((field) => [field.name, fieldSchema(field, schemas)]));
    schemas[message.name] = { type: 'object', properties };
  }
  return { $ref: `#/components/schemas/${message.name}` };
}

function fieldSchema(field: DescField, schemas: Record<string, Json>): Json {
  if (field.fieldKind === 'list') return { type: 'array', items: elementSchema(field, schemas) };
  if (field.fieldKind === 'map') return { type: 'object', additionalProperties: elementSchema(field, schemas) };
  return elementSchema(field, schemas);
}

function elementSchema({ message, enum: names, scalar }: DescField, schemas: Record<string, Json>): Json {
  if (message) return reference(message, schemas);
  if (names) return { type: 'string', enum: names.values.map(({ name }) => name) };
  return SCALARS[scalar ?? ScalarType.STRING] ?? { type: 'string' };
}

const SCALARS: Readonly<Partial<Record<ScalarType, Json>>> = {
  [ScalarType.STRING]: { type: 'string' },
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.INT32]: { type: 'integer', format: 'int32' },
  [ScalarType.INT64]: { type: 'string', format: 'int64' },
  [ScalarType.DOUBLE]: { type: 'number' },
  [ScalarType.BYTES]: { type: 'string', format: 'byte' },
};
