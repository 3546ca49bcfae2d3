import type { ExitCode } from './exit-codes.js';

/** Ends the command with a message for people. `hint` says what to do about it, one thing per line. */
export class CliError extends Error {
  readonly exit: ExitCode;
  readonly hint: readonly string[];

  constructor(exit: ExitCode, message: string, hint: readonly string[] = [], options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliError';
    this.exit = exit;
    this.hint = hint;
  }
}
