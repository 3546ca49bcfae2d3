import { decodeStatus, isServiceError } from '@etude/contracts/rich-status';
import { type ServiceError, status } from '@grpc/grpc-js';
import type { CommanderError } from 'commander';

/** Exit codes of the process. docs/cli.md has a table of them for users. */
export const EXIT = {
  ok: 0,
  /** The command ran, and the result is negative: a task unsolved, a test failed. */
  failed: 1,
  /** Wrong arguments or a request that the gateway called invalid. */
  usage: 2,
  notFound: 3,
  /** The gateway is unreachable or overloaded, or a needed program is not installed. */
  unavailable: 4,
  /** No key, a wrong key, or a key without the needed role. */
  refused: 5,
  /** The request conflicts with the current state: a request id with another body, a stale digest, a wrong state. */
  conflict: 6,
  deadline: 7,
  internal: 70,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with a message for people. Each line of `hint` names one thing to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  /** Code of a service's error, such as "NOT_FOUND"; null for an error of the command line itself. */
  readonly code: string | null;

  constructor(
    readonly exit: ExitCode,
    message: string,
    readonly hint: readonly string[] = [],
    options: ErrorOptions & { readonly code?: string } = {},
  ) {
    super(message, options);
    this.code = options.code ?? null;
  }
}

const HELP = './etude --help lists the commands; --help after a command lists its flags';

/** Turns commander's error into a CliError. null if commander only printed help or the version on request. */
export function usageError({ exitCode, code, message }: CommanderError): CliError | null {
  if (exitCode === 0) return null;
  if (code === 'commander.help') return new CliError(EXIT.usage, 'a command is missing', [HELP]);
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n');
  const said = more.map((line) => line.replace(/^\((.*)\)$/, '$1').trim()).filter((line) => line !== '');
  return new CliError(EXIT.usage, first, [...said, HELP]);
}

const EXITS: Readonly<Record<number, ExitCode>> = {
  [status.CANCELLED]: EXIT.interrupted,
  [status.INVALID_ARGUMENT]: EXIT.usage,
  [status.OUT_OF_RANGE]: EXIT.usage,
  [status.UNIMPLEMENTED]: EXIT.usage,
  [status.NOT_FOUND]: EXIT.notFound,
  [status.UNAVAILABLE]: EXIT.unavailable,
  [status.RESOURCE_EXHAUSTED]: EXIT.unavailable,
  [status.UNAUTHENTICATED]: EXIT.refused,
  [status.PERMISSION_DENIED]: EXIT.refused,
  [status.ALREADY_EXISTS]: EXIT.conflict,
  [status.ABORTED]: EXIT.conflict,
  [status.FAILED_PRECONDITION]: EXIT.conflict,
  [status.DEADLINE_EXCEEDED]: EXIT.deadline,
};

/** Whether a retry can help: the connection broke, or the gateway is overloaded. */
export const isUnavailable = (error: unknown): boolean =>
  isServiceError(error) && (error.code === status.UNAVAILABLE || answeredCode(error) === 'TOO_MANY_CALLS');
export const isCancelled = (error: unknown): boolean => isServiceError(error) && error.code === status.CANCELLED;

/** Etude's own code in a service's error. null if the error has no such code, or no service answered. */
export const answeredCode = (error: unknown): string | null =>
  isServiceError(error) ? (decodeStatus(error.metadata)?.code ?? null) : null;

function hints(error: ServiceError, address: string): string[] {
  const { violations = [], retryAfterMs } = decodeStatus(error.metadata) ?? {};
  // A single violation usually repeats the message, so it is dropped.
  const lines = violations
    .filter(({ description }) => !error.details.includes(description))
    .map(({ field, description }) => `${field}: ${description}`);
  if (retryAfterMs) lines.push(`try again in ${Math.max(1, Math.ceil(retryAfterMs / 1_000))} s`);
  if (error.code === status.UNAUTHENTICATED)
    lines.push('pass a key with --api-key or ETUDE_API_KEY; ./etude keys create makes a key for the local stack');
  if (error.code === status.UNAVAILABLE && !retryAfterMs)
    lines.push(`check the gateway at ${address} with ./etude status; ./etude up starts a gateway here`);
  if (error.code === status.DEADLINE_EXCEEDED) lines.push('allow more time with --timeout SECONDS');
  return lines;
}

/** Message of grpc-js for a call that could not connect in time. */
const GAVE_UP = 'Channel closed before call started';

/** Turns a failed call into a CliError with the wrong fields and hints. Returns any other error unchanged. */
export function explain(error: unknown, address: string): unknown {
  if (!isServiceError(error)) return error;
  const name = answeredCode(error) ?? status[error.code] ?? 'UNKNOWN';
  const details = (error.details || error.message).replace(/ Resolution note: $/, '').replace(GAVE_UP, 'nothing answers there');
  const message = `${name}: ${details}`;
  return new CliError(EXITS[error.code] ?? EXIT.internal, message, hints(error, address), { cause: error, code: name });
}
