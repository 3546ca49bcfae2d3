import { EtudeError, type ErrorDetails } from './errors.js';

/**
 * A status travels in trailers, which peers take up to 8 KiB of: a larger one breaks the connection, with every other call on it. The
 * message is in there twice, with up to three characters for one where it is not plain text.
 */
const MESSAGE_MAX_BYTES = 1_500;
const VIOLATIONS_MAX_BYTES = 2_000;
const VIOLATION_MAX_CHARS = 300;
const FIELD_MAX_CHARS = 100;
const METADATA_MAX_BYTES = 500;

const bytesOf = (text: string) => Buffer.byteLength(encodeURIComponent(text.toWellFormed()).replaceAll('%20', ' '));

/** As much of the text as fits, as gRPC writes it, with a mark where something is missing. */
function cut(text: string, bytesMax: number): string {
  if (bytesOf(text) <= bytesMax) return text;
  let kept = text.slice(0, bytesMax);
  while (bytesOf(kept) > bytesMax - 3) kept = kept.slice(0, Math.floor(kept.length * 0.9));
  return `${kept.toWellFormed()}...`;
}

function someViolations(violations: NonNullable<ErrorDetails['violations']>): NonNullable<ErrorDetails['violations']> {
  const kept: Array<{ field: string; description: string }> = [];
  let left = VIOLATIONS_MAX_BYTES;
  for (const { field, description } of violations) {
    const one = { field: cut(field, FIELD_MAX_CHARS), description: cut(description, VIOLATION_MAX_CHARS) };
    left -= bytesOf(one.field) + bytesOf(one.description);
    if (left < 0) return [...kept, { field: one.field, description: `and ${violations.length - kept.length} more are wrong` }];
    kept.push(one);
  }
  return kept;
}

/** The same error with as much of its words as a status can carry. */
export function boundedError({ code, message, details }: EtudeError): EtudeError {
  const { field, violations, metadata, ...rest } = details;
  return new EtudeError(code, cut(message, MESSAGE_MAX_BYTES), {
    ...rest,
    ...(field === undefined ? {} : { field: cut(field, FIELD_MAX_CHARS) }),
    ...(violations === undefined ? {} : { violations: someViolations(violations) }),
    ...(metadata === undefined || bytesOf(JSON.stringify(metadata)) > METADATA_MAX_BYTES ? {} : { metadata }),
  });
}
