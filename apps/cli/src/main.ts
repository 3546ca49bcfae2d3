import { EXIT } from './errors.js';
import { runCommand } from './program.js';

const interrupt = new AbortController();
function onSignal(signal: NodeJS.Signals): void {
  if (interrupt.signal.aborted) process.exit(EXIT.interrupted);
  interrupt.abort(signal);
}

process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
// The reader of stdout closed the pipe, as `| head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.internal));
const { env: environment, stdout, stderr } = process;
process.exitCode = await runCommand(process.argv.slice(2), { environment, stdout, stderr, signal: interrupt.signal });
