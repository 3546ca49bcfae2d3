import type { CommanderError } from 'commander';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-codes.js';

const HELP = './etude --help, or --help after any command, says what there is';

/** What commander has against the arguments, as every other error is told; null where it only printed what was asked for. */
export function usageError({ exitCode, code, message }: CommanderError): CliError | null {
  if (exitCode === 0) return null;
  if (code === 'commander.help') return new CliError(EXIT.usage, 'a command is missing', [HELP]);
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n');
  const hints = more.map((line) => line.replace(/^\((.*)\)$/, '$1').trim()).filter((line) => line !== '');
  return new CliError(EXIT.usage, first, [...hints, HELP]);
}
