import { CommanderError } from 'commander';
import { type Cli, createCli, type GlobalOptions, readSettings, type Start } from './cli.js';
import { CliError, EXIT, isCancelled, usageError } from './errors.js';
import { printable, printableJson } from './output.js';
import { buildProgram } from './program.js';

const interrupt = new AbortController();
/** The first signal asks the command to stop. The second ends the process. */
function onSignal(signal: NodeJS.Signals): void {
  if (interrupt.signal.aborted) process.exit(EXIT.interrupted);
  interrupt.abort(signal);
}

/** Whether the error comes from the interruption: the signal's reason, an AbortError or a cancelled call. */
function isInterruption(error: unknown): boolean {
  const { aborted, reason } = interrupt.signal;
  if (!aborted) return false;
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || isCancelled(error.cause ?? error)));
}

function report(error: unknown, json: boolean): number {
  if (error instanceof CommanderError) {
    const usage = usageError(error);
    if (usage === null) return EXIT.ok;
    // For a missing command, commander has printed the help already.
    return error.code === 'commander.help' && !json ? usage.exit : report(usage, json);
  }
  if (isInterruption(error)) return EXIT.interrupted;
  const known = error instanceof CliError;
  const message = error instanceof Error ? error.message : String(error);
  const hint = known ? error.hint : [];
  const code = known && error.code !== null ? { code: error.code } : {};
  if (json) process.stderr.write(`${printableJson(JSON.stringify({ error: message, ...code, hint }))}\n`);
  else process.stderr.write(printable([`etude: ${message}`, ...hint.map((line) => `  ${line}`), ''].join('\n')));
  if (!known && !json) process.stderr.write(printable(`${(error as Error).stack ?? ''}\n`));
  return known ? error.exit : EXIT.internal;
}

async function main(): Promise<number> {
  let exit: number = EXIT.ok;
  let json = process.argv.includes('--json');
  const start: Start = async (command, handler) => {
    const globals = command.optsWithGlobals<GlobalOptions>();
    json = globals.json === true;
    const cli: Cli = createCli(readSettings(process.env), globals, interrupt.signal);
    exit = await handler(cli);
  };
  try {
    await buildProgram(start, json).parseAsync(process.argv);
    return exit;
  } catch (error) {
    return report(error, json);
  }
}

process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
// The reader of stdout closed the pipe, as `| head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.internal));
process.exitCode = await main();
