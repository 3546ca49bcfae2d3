import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { AnySchema, anyPack, anyUnpack, durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import type { Metadata, ServiceError } from '@grpc/grpc-js';
import { type ErrorCode, ERROR_KINDS, type ErrorDetails, EtudeError } from './errors.js';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema, type Status, StatusSchema } from './gen/google/rpc/status_pb.js';

/** The binary metadata key of `google.rpc.Status`, which gRPC sends beside code and message. */
export const STATUS_DETAILS_KEY = 'grpc-status-details-bin';
const ERROR_DOMAIN = 'etude';
/** Default for a retryable error without its own retry time. */
const RETRY_AFTER_DEFAULT_MS = 1_000;

const packed = <D extends DescMessage>(schema: D, value: MessageInitShape<D>) => create(AnySchema, anyPack(schema, create(schema, value)));

/** Encodes an error as `google.rpc.Status`, with ErrorInfo always, BadRequest for wrong fields, and RetryInfo for retryable errors. */
export function encodeStatus(error: EtudeError): Buffer {
  const { violations, field, retryAfterMs, metadata = {} } = error.details;
  const fieldViolations = violations?.map((one) => ({ ...one })) ?? (field ? [{ field, description: error.message }] : []);
  const kind = ERROR_KINDS[error.code];
  const retryMs = retryAfterMs ?? (kind.retryable ? RETRY_AFTER_DEFAULT_MS : undefined);
  const details = [
    packed(ErrorInfoSchema, { reason: error.code, domain: ERROR_DOMAIN, metadata: { ...metadata } }),
    ...(fieldViolations.length > 0 ? [packed(BadRequestSchema, { fieldViolations })] : []),
    ...(retryMs === undefined ? [] : [packed(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryMs)) })]),
  ];
  return Buffer.from(toBinary(StatusSchema, create(StatusSchema, { code: kind.grpc, message: error.message, details })));
}

export const isServiceError = (error: unknown): error is ServiceError =>
  error instanceof Error && typeof (error as Partial<ServiceError>).code === 'number' && 'metadata' in error;

const unpacked = <D extends DescMessage>({ details }: Status, schema: D) =>
  details.map((one) => anyUnpack(one, schema)).find((one) => one !== undefined);

/** Decodes the details of a failed call: Etude's code, the wrong fields and the retry time; null if the status isn't from Etude. */
export function decodeStatus(metadata: Metadata | undefined): ({ code: ErrorCode } & ErrorDetails) | null {
  const bytes = metadata?.get(STATUS_DETAILS_KEY)[0];
  if (!(bytes instanceof Buffer)) return null;
  const status = fromBinary(StatusSchema, bytes);
  const info = unpacked(status, ErrorInfoSchema);
  if (!info || info.domain !== ERROR_DOMAIN || !(info.reason in ERROR_KINDS)) return null;
  const delay = unpacked(status, RetryInfoSchema)?.retryDelay;
  const violations = unpacked(status, BadRequestSchema)?.fieldViolations.map(({ field, description }) => ({ field, description }));
  return {
    code: info.reason as ErrorCode,
    metadata: info.metadata,
    ...(violations ? { violations } : {}),
    ...(delay ? { retryAfterMs: durationMs(delay) } : {}),
  };
}

/**
 * Limits of a status. It travels in trailers. Peers accept 8 KiB of trailers, and more breaks the connection with all its calls. A
 * status contains the message twice, with three characters for each byte that isn't plain text.
 */
const MESSAGE_MAX_BYTES = 1_500;
const VIOLATIONS_MAX = 10;
const FIELD_MAX_BYTES = 100;
const DESCRIPTION_MAX_BYTES = 150;
const METADATA_MAX_BYTES = 500;

const bytesOf = (text: string) => Buffer.byteLength(encodeURIComponent(text.toWellFormed()).replaceAll('%20', ' '));

/** Cuts the text to fit `bytesMax` in gRPC's encoding, and marks the cut with "...". */
function cut(text: string, bytesMax: number): string {
  if (bytesOf(text) <= bytesMax) return text;
  let kept = text.slice(0, bytesMax);
  while (bytesOf(kept) > bytesMax - 3) kept = kept.slice(0, Math.floor(kept.length * 0.9));
  return `${kept.toWellFormed()}...`;
}

export function boundedError({ code, message, details }: EtudeError): EtudeError {
  const { field, violations, metadata, ...rest } = details;
  const some = violations?.slice(0, VIOLATIONS_MAX).map((one) => ({
    field: cut(one.field, FIELD_MAX_BYTES),
    description: cut(one.description, DESCRIPTION_MAX_BYTES),
  }));
  return new EtudeError(code, cut(message, MESSAGE_MAX_BYTES), {
    ...rest,
    ...(field === undefined ? {} : { field: cut(field, FIELD_MAX_BYTES) }),
    ...(some === undefined ? {} : { violations: some }),
    ...(metadata === undefined || bytesOf(JSON.stringify(metadata)) > METADATA_MAX_BYTES ? {} : { metadata }),
  });
}
