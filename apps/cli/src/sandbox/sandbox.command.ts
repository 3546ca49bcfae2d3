import { type Command, Option } from 'commander';
import type { Start } from '../cli.js';
import { duration, integer, keyValue } from '../options.js';
import { closeSandbox, createSandbox, getSandbox, LIST_STATES, listSandboxes, type ListOptions, renewSandbox } from './manage-sandboxes.js';
import { repl } from './repl.js';
import { type CodeOptions, execCode, type ExecOptions, runCode } from './run-code.js';
import { listFiles, removeFile } from './sandbox-files.js';
import type { CreateOptions } from './sandbox-request.js';
import { downloadFile, uploadFile } from './transfer.js';

/** Of a sandbox that is made: what each execution in it may use unless that says otherwise. */
const DEFAULTS = { cpu: '10s', wall: '20s', memory: '512', processes: '64', fileSize: '64', output: '256', disk: '128' };
/** Of an execution in a sandbox that is there. */
const AS_CREATED = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, 'as created'])) as typeof DEFAULTS;

const limits = (command: Command, defaults: typeof DEFAULTS) =>
  command
    .option('--cpu <time>', `of the processor, for each execution (default: ${defaults.cpu})`, duration)
    .option('--wall <time>', `by the clock, for each execution (default: ${defaults.wall})`, duration)
    .option('--memory <mib>', `default: ${defaults.memory}`, integer(16, 65_536))
    .option('--processes <n>', `default: ${defaults.processes}`, integer(1, 4_096))
    .option('--file-size <mib>', `of a single file (default: ${defaults.fileSize})`, integer(1, 65_536))
    .option('--output <kib>', `kept of each stream, head and tail (default: ${defaults.output})`, integer(1, 16_384))
    .option('--disk <mib>', `default: ${defaults.disk}`, integer(1, 65_536));

const shape = (command: Command) =>
  limits(command, DEFAULTS)
    .option('--template <name>', 'kind of sandbox, from the settings of the installation (default: default)')
    .option('--ttl <time>', 'how long it lives unless renewed, such as 90s, 10m, 2h (default: 10m)', duration)
    .option('--label <key=value>', 'repeatable', keyValue)
    .option('--request-id <id>', 'makes a repeat harmless: same id and body, same sandbox');

const code = (command: Command) =>
  command
    .option('--shell', 'a command line for /bin/sh instead of Python')
    .option('--stdin <text>', 'for --shell; @FILE reads a file, - reads stdin')
    .option('--save-displays <dir>', 'write images, tables and JSON that are displayed into files');

function addExecution(sandbox: Command, start: Start): void {
  code(shape(sandbox.command('run <code>')))
    .description('run code in a sandbox of its own that is closed afterwards; @FILE reads a file, - reads stdin')
    .action((text: string, options: CreateOptions & CodeOptions, command: Command) => start(command, (cli) => runCode(cli, text, options)));
  code(limits(sandbox.command('exec <sandbox> [code]'), AS_CREATED))
    .description('run a cell, which keeps its names for the next one; @FILE reads a file, - reads stdin; Ctrl-C cancels it')
    .option('--execution-id <id>', 'makes a repeat harmless: the same id follows the first')
    .option('--resume <token>', 'go on behind this event of --execution-id')
    .action((name: string, text: string | undefined, options: ExecOptions, command: Command) =>
      start(command, (cli) => execCode(cli, name, text, options)),
    );
  sandbox
    .command('repl <sandbox>')
    .description('cells one after the other, interactively')
    .action((name: string, _options: object, command: Command) => start(command, (cli) => repl(cli, name)));
}

function addFiles(sandbox: Command, start: Start): void {
  sandbox
    .command('upload <sandbox> <file> [path]')
    .description('a file into the working directory; goes on by itself where the connection breaks')
    .option('--resume', 'go on with an upload that was cut')
    .action((name: string, file: string, path: string | undefined, options: { resume?: boolean }, command: Command) =>
      start(command, (cli) => uploadFile(cli, name, file, path, options)),
    );
  sandbox
    .command('download <sandbox> <path> [file]')
    .description('a file out of it; - is stdout')
    .option('--resume', 'go on with what is in FILE.part')
    .action((name: string, path: string, file: string | undefined, options: { resume?: boolean }, command: Command) =>
      start(command, (cli) => downloadFile(cli, name, path, file, options)),
    );
  sandbox
    .command('files <sandbox>')
    .description('regular files below the working directory')
    .action((name: string, _options: object, command: Command) => start(command, (cli) => listFiles(cli, name)));
  sandbox
    .command('rm <sandbox> <path>')
    .description('remove a file')
    .action((name: string, path: string, _options: object, command: Command) => start(command, (cli) => removeFile(cli, name, path)));
}

/** `sandbox create|list|get|run|exec|repl|upload|download|files|rm|renew|close`. */
export function addSandbox(program: Command, start: Start): void {
  const sandbox = program.command('sandbox').description('code interpreters of your own: run code, keep names and files, move files');
  shape(sandbox.command('create'))
    .description('claim one; prints its name')
    .action((options: CreateOptions, command: Command) => start(command, (cli) => createSandbox(cli, options)));
  sandbox
    .command('list')
    .description('newest first')
    .addOption(new Option('--state <state>', 'only in this state').choices([...LIST_STATES]))
    .option('--limit <n>', 'how many', integer(1, 100_000), 50)
    .action((options: ListOptions, command: Command) => start(command, (cli) => listSandboxes(cli, options)));
  sandbox
    .command('get <sandbox>')
    .description('one sandbox as it stands')
    .action((name: string, _options: object, command: Command) => start(command, (cli) => getSandbox(cli, name)));
  addExecution(sandbox, start);
  addFiles(sandbox, start);
  sandbox
    .command('renew <sandbox>')
    .description('let it live longer, counted from now')
    .option('--ttl <time>', 'such as 90s, 10m, 2h (default: 10m)', duration)
    .action((name: string, options: { ttl?: number }, command: Command) => start(command, (cli) => renewSandbox(cli, name, options)));
  sandbox
    .command('close <sandbox>')
    .description('end everything in it; one that has ended stays as it is')
    .action((name: string, _options: object, command: Command) => start(command, (cli) => closeSandbox(cli, name)));
}
