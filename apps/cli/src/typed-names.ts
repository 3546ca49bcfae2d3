import { decodeStatus } from '@etude/contracts/rich-status';
import type { Command } from 'commander';
import { CliError } from './cli-error.js';
import { isServiceError } from './grpc-errors.js';

/** Fields of requests that the command line calls otherwise. */
const CALLED: Readonly<Record<string, string>> = { model: 'to', tokens_max: 'tokens' };

type Words = Pick<Command, 'options' | 'registeredArguments'>;

/** A failed call, with fields of its request called what was typed for them: "--layer" in place of "layers[0]". Anything else as it is. */
export function inTypedNames(error: unknown, command: Words): unknown {
  if (!(error instanceof CliError) || !isServiceError(error.cause)) return error;
  let [message, hint] = [error.message, error.hint];
  for (const { field, description } of decodeStatus(error.cause.metadata)?.violations ?? []) {
    const typed = typedName(field, command);
    if (typed === null) continue;
    const renamed = (text: string) => text.replace(`${field}: ${description}`, () => `${typed}: ${description}`);
    message = renamed(message);
    hint = hint.map((line) => (line === `field: ${field}` ? `that is ${typed}` : renamed(line)));
  }
  return new CliError(error.exit, message, hint, { cause: error.cause, ...(error.code === null ? {} : { code: error.code }) });
}

/** null where the command takes nothing that is called so: it stands in a file, or was made. */
function typedName(field: string, { options, registeredArguments }: Words): string | null {
  const [, name = ''] = /^(?:head\.)?([a-z0-9_]+)(?:\[\d+\])?$/.exec(field) ?? [];
  const names = [name, name.replace(/s$/, ''), CALLED[name] ?? ''].map((one) => one.replaceAll('_', '-'));
  for (const one of names) {
    if (options.some(({ long }) => long === `--${one}`)) return `--${one}`;
    if (registeredArguments.some((argument) => argument.name() === one)) return `<${one}>`;
  }
  return null;
}
