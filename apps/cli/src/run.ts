import { CommanderError } from 'commander';
import { createCli, type GlobalOptions, readSettings, type Start } from './cli.js';
import { CliError, EXIT, isCancelled, usageError } from './errors.js';
import { Output, printable, printableJson, type Terminal } from './output.js';
import { buildProgram } from './program.js';

/** Where one command runs: its environment variables, its outputs, and the signal that interrupts it. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  readonly signal: AbortSignal;
}

/** Whether the error comes from the interruption: the signal's reason, an AbortError or a cancelled call. */
function isInterruption(error: unknown, { aborted, reason }: AbortSignal): boolean {
  if (!aborted) return false;
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || isCancelled(error.cause ?? error)));
}

function report(error: unknown, json: boolean, surroundings: Surroundings): number {
  const { stderr, signal } = surroundings;
  if (error instanceof CommanderError) {
    const usage = usageError(error);
    if (usage === null) return EXIT.ok;
    // For a missing command, commander has printed the help already.
    return error.code === 'commander.help' && !json ? usage.exit : report(usage, json, surroundings);
  }
  if (isInterruption(error, signal)) return EXIT.interrupted;
  const known = error instanceof CliError;
  const message = error instanceof Error ? error.message : String(error);
  const hint = known ? error.hint : [];
  const code = known && error.code !== null ? { code: error.code } : {};
  if (json) stderr.write(`${printableJson(JSON.stringify({ error: message, ...code, hint }))}\n`);
  else stderr.write(printable([`etude: ${message}`, ...hint.map((line) => `  ${line}`), ''].join('\n')));
  if (!known && !json) stderr.write(printable(`${(error as Error).stack ?? ''}\n`));
  return known ? error.exit : EXIT.internal;
}

/** Runs one command line and reports its failure. @param words after the program's name; returns the exit code */
export async function runCommand(words: readonly string[], surroundings: Surroundings): Promise<number> {
  const { environment, stdout, stderr, signal } = surroundings;
  let exit: number = EXIT.ok;
  let json = words.includes('--json');
  const start: Start = async (command, handler) => {
    const globals = command.optsWithGlobals<GlobalOptions>();
    json = globals.json === true;
    exit = await handler(createCli(readSettings(environment), globals, signal, new Output(stdout, stderr, json)));
  };
  try {
    await buildProgram(start, json).parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    return report(error, json, surroundings);
  }
}
