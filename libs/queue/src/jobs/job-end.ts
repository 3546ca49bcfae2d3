import { ERROR_KINDS, type ErrorCode, errorCode, errorDetails, EtudeError, isRetryable } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import { type Job, UnrecoverableError } from 'bullmq';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { z } from 'zod';

/** Why a job failed, stored as JSON with the job. Errors cross queues by code, never by class. */
const JobFailure = z.object({
  code: z.enum(Object.keys(ERROR_KINDS) as ErrorCode[]),
  message: z.string(),
  /** Path of the wrong field in the payload, such as "rolloutId". */
  path: z.string().optional(),
});
export type JobFailure = Readonly<z.infer<typeof JobFailure>>;

const MESSAGE_MAX_CHARS = 4_000;

export function toFailure(error: unknown): JobFailure {
  const message = error instanceof Error ? error.message : String(error);
  const path = errorDetails(error).field;
  return { code: errorCode(error), message: message.slice(0, MESSAGE_MAX_CHARS), ...(typeof path === 'string' && path ? { path } : {}) };
}

/** Reads a failed job's reason. BullMQ's own reasons get the code WORKER_LOST or INTERNAL. */
export function readFailure(reason = ''): JobFailure {
  const { data } = JobFailure.safeParse(parsedJson(reason));
  return data ?? { code: /stalled/.test(reason) ? 'WORKER_LOST' : 'INTERNAL', message: reason || 'failed without a reason' };
}

/** Parses a payload or a result. @throws EtudeError with `code`, naming the path of the first wrong field */
export function parseOr<S extends z.ZodType>(schema: S, value: unknown, code: ErrorCode, what: string): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const path = issue.path.map(String).join('.');
  throw new EtudeError(code, `${what} is wrong at "${path || '(root)'}": ${issue.message}`, { field: path });
}

/** Parses a stored value without the fields that a later version added. @throws EtudeError with `code`, naming the first wrong field */
export function parseStored<S extends z.ZodType>(schema: S, value: unknown, code: ErrorCode, what: string): z.infer<S> {
  return readStored(schema, value).data ?? parseOr(schema, value, code, what);
}

/** Parses a stored value. Removes unknown fields at every depth: a later version may have added them. Not for requests: they must be exact. */
export function readStored<S extends z.ZodType>(schema: S, value: unknown): z.ZodSafeParseResult<z.infer<S>> {
  const read = schema.safeParse(value);
  const unknown = read.error?.issues.filter((issue) => issue.code === 'unrecognized_keys') ?? [];
  for (const { path, keys } of unknown) {
    const holder = path.reduce((part, key) => (part as Record<PropertyKey, unknown>)[key], value) as object;
    for (const key of keys) Reflect.deleteProperty(holder, key);
  }
  return unknown.length === 0 ? read : schema.safeParse(value);
}

/**
 * Why this worker's lease of a running job ended: the worker shuts down, or it lost the job's lock. No caller asked to stop the work.
 * Another worker takes the job, so an execution that was started for it must continue.
 */
export type LeaseEnd = 'shutdown' | 'lost';

export class LeaseEnded extends Error {
  override readonly name = 'AbortError';
  constructor(readonly lease: LeaseEnd) {
    super(
      lease === 'shutdown'
        ? 'this worker is shutting down; another worker continues the job'
        : 'this worker did not renew the lock of the job in time; another worker may run the job now',
    );
  }
}

/** Why the lease ended; null if the signal hasn't aborted, or aborted for a cancel or a deadline. Works through `AbortSignal.any`. */
export function leaseEndOf(signal: AbortSignal): LeaseEnd | null {
  const lease = (signal.reason as { lease?: unknown } | null | undefined)?.lease;
  return signal.aborted && (lease === 'shutdown' || lease === 'lost') ? lease : null;
}

/** The end of a job. `missing`: the job was removed, so its end is unknown. */
export type JobEnd =
  | { readonly kind: 'completed'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: Error }
  | { readonly kind: 'missing' };

/** Why a job is dead; null if it isn't. A completed job may still hold the failure of an earlier attempt, which doesn't count. */
export function deathOf(job: Job): JobFailure | null {
  return job.finishedOn && job.failedReason && job.returnvalue === null ? readFailure(job.failedReason) : null;
}

/** How long a handler may go on after the queue's `timeoutMs`. Then the job fails, even if the handler still runs. */
const OVERTIME_MS = 5_000;

/** Aborts `stop` with DEADLINE_EXCEEDED after the queue's `timeoutMs`. */
export async function withinTime<T>(stop: AbortController, declaration: QueueDeclaration, work: () => Promise<T>): Promise<T> {
  const timers: NodeJS.Timeout[] = [];
  const late = new EtudeError('DEADLINE_EXCEEDED', `a ${declaration.name} job ran longer than ${declaration.timeoutMs} ms`);
  const overtime = new Promise<never>((_, reject) => {
    timers.push(setTimeout(() => stop.abort(late), Math.min(declaration.timeoutMs, 2 ** 31 - 1)));
    timers.push(setTimeout(() => reject(late), Math.min(declaration.timeoutMs + OVERTIME_MS, 2 ** 31 - 1)));
  });
  try {
    return await Promise.race([work(), overtime]);
  } catch (error) {
    throw stop.signal.reason === late ? late : error;
  } finally {
    timers.forEach(clearTimeout);
  }
}

/** The error that BullMQ stores. Its class decides whether BullMQ retries the job. */
export function asJobError(error: unknown): Error {
  const text = JSON.stringify(toFailure(error));
  return isRetryable(error) ? new Error(text, { cause: error }) : new UnrecoverableError(text);
}
