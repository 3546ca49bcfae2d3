import type { ExitCode } from './exit-codes.js';

export interface CliErrorOptions extends ErrorOptions {
  /** Of a service's error, such as "NOT_FOUND". */
  readonly code?: string;
}

/** Ends the command with a message for people. `hint` says what to do about it, one thing per line. */
export class CliError extends Error {
  readonly exit: ExitCode;
  readonly hint: readonly string[];
  /** Of a service's error; null for one of the command line's own. */
  readonly code: string | null;

  constructor(exit: ExitCode, message: string, hint: readonly string[] = [], options: CliErrorOptions = {}) {
    super(message, options);
    this.name = 'CliError';
    this.exit = exit;
    this.hint = hint;
    this.code = options.code ?? null;
  }
}
