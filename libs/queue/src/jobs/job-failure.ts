import { ERROR_KINDS, EtudeError, errorCode, errorDetails } from '@etude/contracts/errors';
import type { ErrorCode } from '@etude/contracts/errors';
import { z } from 'zod';

/** Why a job failed, as it is stored with the job in JSON: errors cross queues by code, never by class. */
export interface JobFailure {
  readonly code: ErrorCode;
  readonly message: string;
  /** Where the payload is wrong, such as "rolloutId". */
  readonly path?: string;
}

const MESSAGE_MAX_CHARS = 4_000;

export function toFailure(error: unknown): JobFailure {
  const message = error instanceof Error ? error.message : String(error);
  const path = errorDetails(error).field;
  return { code: errorCode(error), message: message.slice(0, MESSAGE_MAX_CHARS), ...(typeof path === 'string' && path ? { path } : {}) };
}

/** Reads a failed job's reason. Text that is not ours (BullMQ's own) has the code WORKER_LOST or INTERNAL. */
export function readFailure(reason: string | undefined): JobFailure {
  const text = reason ?? '';
  try {
    const parsed = Failure.safeParse(JSON.parse(text));
    if (parsed.success && parsed.data.code in ERROR_KINDS) return { ...parsed.data, code: parsed.data.code as ErrorCode };
  } catch (error) {
    // Not JSON: one of BullMQ's own sentences.
    if (!(error instanceof SyntaxError)) throw error;
  }
  return { code: /stalled/.test(text) ? 'WORKER_LOST' : 'INTERNAL', message: text || 'failed without a reason' };
}

const Failure = z.object({ code: z.string(), message: z.string(), path: z.string().optional() });

export function failureError({ code, message, path }: JobFailure): EtudeError {
  return new EtudeError(code, message, path ? { field: path } : {});
}

/**
 * Parses a payload or a result.
 *
 * @throws EtudeError with `code`, naming the path that is wrong
 */
export function parseOr<S extends z.ZodType>(schema: S, value: unknown, code: ErrorCode, what: string): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = pathOf(issue);
  throw new EtudeError(code, `${what} is wrong at "${path || '(root)'}": ${issue?.message ?? 'does not parse'}`, { field: path });
}

function pathOf(issue: z.core.$ZodIssue | undefined): string {
  if (!issue) return '';
  const unknownKey = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  return [...issue.path, ...(unknownKey === undefined ? [] : [unknownKey])].map(String).join('.');
}
