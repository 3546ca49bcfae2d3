import { create, createFileRegistry, type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import {
  type Any,
  AnySchema,
  anyPack,
  anyUnpack,
  type Duration,
  durationFromMs,
  durationMs,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_duration,
} from '@bufbuild/protobuf/wkt';
import type { Metadata } from '@grpc/grpc-js';
import { type ErrorCode, ERROR_KINDS, type ErrorDetails, type EtudeError } from './errors.js';

/** Binary metadata key in which gRPC carries a `google.rpc.Status` beside code and message. */
export const STATUS_DETAILS_KEY = 'grpc-status-details-bin';
const ERROR_DOMAIN = 'etude';
/** Where a retryable error does not say itself when to come back. */
const RETRY_AFTER_DEFAULT_MS = 1_000;

interface Status extends Message {
  code: number;
  message: string;
  details: Any[];
}
interface ErrorInfo extends Message {
  reason: string;
  domain: string;
  metadata: Record<string, string>;
}
interface BadRequest extends Message {
  fieldViolations: Array<{ field: string; description: string }>;
}
interface RetryInfo extends Message {
  retryDelay: Duration | undefined;
}

const field = (name: string, number: number, type: Type, typeName = '', label = Label.OPTIONAL) => ({
  name,
  number,
  type,
  label,
  ...(typeName ? { typeName } : {}),
});
const text = (name: string, number: number) => field(name, number, Type.STRING);

/** The part of google/rpc/status.proto and error_details.proto that Etude sends; names and numbers are theirs. */
const files = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: 'google/rpc/status.proto',
    package: 'google.rpc',
    syntax: 'proto3',
    dependency: [file_google_protobuf_any.proto.name, file_google_protobuf_duration.proto.name],
    messageType: [
      {
        name: 'Status',
        field: [
          field('code', 1, Type.INT32),
          text('message', 2),
          field('details', 3, Type.MESSAGE, '.google.protobuf.Any', Label.REPEATED),
        ],
      },
      {
        name: 'ErrorInfo',
        field: [
          text('reason', 1),
          text('domain', 2),
          field('metadata', 3, Type.MESSAGE, '.google.rpc.ErrorInfo.MetadataEntry', Label.REPEATED),
        ],
        nestedType: [{ name: 'MetadataEntry', field: [text('key', 1), text('value', 2)], options: { mapEntry: true } }],
      },
      {
        name: 'BadRequest',
        field: [field('field_violations', 1, Type.MESSAGE, '.google.rpc.BadRequest.FieldViolation', Label.REPEATED)],
        nestedType: [{ name: 'FieldViolation', field: [text('field', 1), text('description', 2)] }],
      },
      { name: 'RetryInfo', field: [field('retry_delay', 1, Type.MESSAGE, '.google.protobuf.Duration')] },
    ],
  }),
  (name) => [file_google_protobuf_any, file_google_protobuf_duration].find((known) => known.proto.name === name),
);

function schema(name: string): DescMessage {
  const found = files.getMessage(`google.rpc.${name}`);
  if (!found) throw new Error(`google.rpc.${name} is not described`);
  return found;
}

const packed = (name: string, value: object): Any => create(AnySchema, anyPack(schema(name), create(schema(name), value as never)));

/** `google.rpc.Status` of an error: ErrorInfo always, BadRequest where fields are wrong, RetryInfo where trying again helps. */
export function encodeStatus(error: EtudeError, metadata: Readonly<Record<string, string>> = {}): Buffer {
  const { violations, field: single, retryAfterMs, metadata: more } = error.details;
  const fields = violations ?? (single ? [{ field: single, description: error.message }] : []);
  const kind = ERROR_KINDS[error.code];
  const retryMs = retryAfterMs ?? (kind.retryable ? RETRY_AFTER_DEFAULT_MS : undefined);
  const details = [
    packed('ErrorInfo', { reason: error.code, domain: ERROR_DOMAIN, metadata: { ...more, ...metadata } }),
    ...(fields.length > 0 ? [packed('BadRequest', { fieldViolations: fields })] : []),
    ...(retryMs === undefined ? [] : [packed('RetryInfo', { retryDelay: durationFromMs(Math.ceil(retryMs)) })]),
  ];
  return Buffer.from(toBinary(schema('Status'), create(schema('Status'), { code: kind.grpc, message: error.message, details })));
}

function unpack(status: Status, name: string): Message | undefined {
  for (const any of status.details) {
    const message = anyUnpack(any, schema(name));
    if (message) return message;
  }
  return undefined;
}

/** What a client can know about a failed call beyond its status: Etude's code, the wrong fields, when to try again. */
export function decodeStatus(metadata: Metadata | undefined): ({ code: ErrorCode } & ErrorDetails) | null {
  const bytes = metadata?.get(STATUS_DETAILS_KEY)[0];
  if (!(bytes instanceof Buffer)) return null;
  const status = fromBinary(schema('Status'), bytes) as unknown as Status;
  const info = unpack(status, 'ErrorInfo') as ErrorInfo | undefined;
  if (!info || info.domain !== ERROR_DOMAIN || !(info.reason in ERROR_KINDS)) return null;
  const delay = (unpack(status, 'RetryInfo') as RetryInfo | undefined)?.retryDelay;
  const violations = (unpack(status, 'BadRequest') as BadRequest | undefined)?.fieldViolations.map(({ field: path, description }) => ({
    field: path,
    description,
  }));
  return {
    code: info.reason as ErrorCode,
    metadata: info.metadata,
    ...(violations ? { violations } : {}),
    ...(delay ? { retryAfterMs: durationMs(delay) } : {}),
  };
}
