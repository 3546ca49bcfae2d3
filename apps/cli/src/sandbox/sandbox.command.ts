import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type CreateSandboxRequestSchema, type Sandbox, Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { Command } from 'commander';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, commandLine, type Gateway, type Start, withGateway } from '../cli.js';
import { addNoun, type Entry, type Flags, hand, LIMIT, plain, resource } from '../command.js';
import { EXIT, type ExitCode } from '../errors.js';
import { duration, integer, keyValue } from '../options.js';
import { type CodeOptions, executionOf, type LimitOptions, limitsOf, outcomeExit, showExecution } from './execution.js';
import { repl } from './repl.js';
import { fileTable, sandboxTable, sandboxText } from './sandbox-lines.js';
import { downloadFile, uploadFile } from './transfer.js';

/** Flags that bound each execution. @param usual names the limit where a flag is left out */
const limitFlags = (usual: (limit: string) => string): Flags => ({
  '--cpu <time>': { help: `processor time of each execution (default: ${usual('10s')})`, parse: duration },
  '--wall <time>': { help: `wall time of each execution (default: ${usual('20s')})`, parse: duration },
  '--memory <mib>': { help: `default: ${usual('512')}`, parse: integer(16, 65_536) },
  '--processes <n>': { help: `default: ${usual('64')}`, parse: integer(1, 4_096) },
  '--file-size <mib>': { help: `of a single file (default: ${usual('64')})`, parse: integer(1, 65_536) },
  '--output <kib>': { help: `kept of each stream, head and tail (default: ${usual('256')})`, parse: integer(1, 16_384) },
  '--disk <mib>': { help: `default: ${usual('128')}`, parse: integer(1, 65_536) },
});

const CREATE_FLAGS: Flags = {
  ...limitFlags((limit) => limit),
  '--template <name>': 'kind of sandbox, from the settings of the installation (default: default)',
  '--ttl <time>': { help: 'how long it lives unless renewed, such as 90s, 10m, 2h (default: 10m)', parse: duration },
  '--label <key=value>': { help: 'repeatable', parse: keyValue },
  '--request-id <id>': 'makes a repeat harmless: same id and body, same sandbox',
};

const CODE_FLAGS: Flags = {
  '--shell': 'a command line for /bin/sh instead of Python',
  '--stdin <text>': 'for --shell; @FILE reads a file, - reads stdin',
  '--save-displays <dir>': 'write images, tables and JSON that are displayed into files',
};

interface CreateOptions extends LimitOptions {
  readonly template?: string;
  readonly ttl?: number;
  readonly label?: Readonly<Record<string, string>>;
  readonly requestId?: string;
}

const createRequest = (options: CreateOptions): MessageInitShape<typeof CreateSandboxRequestSchema> => ({
  requestId: options.requestId ?? randomUUID(),
  template: options.template ?? '',
  limits: limitsOf(options),
  ...(options.ttl === undefined ? {} : { ttl: durationFromMs(options.ttl) }),
  labels: options.label ?? {},
});

/** `sandbox exec`: 0 where the code succeeded, 1 where it failed, 130 where Ctrl-C ended it. */
async function execCode(cli: Cli, options: CodeOptions, [sandbox = '', code]: readonly string[]): Promise<number> {
  const execution = await executionOf(resource('sandbox', sandbox), code, options);
  return withGateway(cli, (gateway) => exitOf(cli, gateway, execution, options));
}

async function exitOf(cli: Cli, gateway: Gateway, execution: Awaited<ReturnType<typeof executionOf>>, options: CodeOptions) {
  const outcome = await showExecution(cli, gateway, execution, { ...options, cancel: cli.signal });
  return cli.signal.aborted ? EXIT.interrupted : outcomeExit(outcome);
}

/** `sandbox run`: a sandbox of its own for one piece of code. The sandbox is closed however that ends. */
async function runCode(cli: Cli, options: CreateOptions & CodeOptions, [code]: readonly string[]): Promise<number> {
  const execution = await executionOf('', code, options);
  return withGateway(cli, async (gateway): Promise<ExitCode> => {
    cli.out.status('waiting for a sandbox');
    const request = createRequest(options);
    const { name } = await ridingOut(cli.signal, () => gateway.sandboxes.createSandbox(request, callSettings(cli)));
    cli.out.status('');
    try {
      return await exitOf(cli, gateway, { ...execution, name }, options);
    } finally {
      const never = new AbortController().signal;
      await ridingOut(never, () => gateway.sandboxes.closeSandbox({ name }, { timeoutMs: cli.callTimeoutMs }));
    }
  });
}

const one = { repeat: true, text: (sandbox: Sandbox) => sandboxText(sandbox) };
const RESUMES = 'goes on by itself where the connection breaks';

const ENTRIES: readonly Entry[] = [
  plain(Sandboxes.method.createSandbox, {
    command: 'create',
    help: 'claim a sandbox; prints its name',
    flags: CREATE_FLAGS,
    ask: (_filled, { options }) => createRequest(options as unknown as CreateOptions),
    text: ({ name }) => name,
  }),
  plain(Sandboxes.method.listSandboxes, {
    command: 'list',
    help: 'newest first',
    flags: { '--state <state>': 'only in this state', ...LIMIT(50) },
    list: 'sandboxes',
    text: ({ sandboxes }) => sandboxTable(sandboxes, Date.now()),
    none: ({ cli }) => `no sandboxes; ${commandLine(cli, 'sandbox create')} makes one`,
  }),
  plain(Sandboxes.method.getSandbox, { command: 'get <sandbox>', help: 'one sandbox as it stands', ...one }),
  hand<CreateOptions & CodeOptions>({
    command: 'run <code>',
    help: 'run code in a sandbox of its own that is closed afterwards; @FILE reads a file, - reads stdin',
    flags: { ...CREATE_FLAGS, ...CODE_FLAGS },
    run: runCode,
  }),
  hand<CodeOptions>({
    command: 'exec <sandbox> [code]',
    help: 'run a cell; its names stay for the next one; @FILE reads a file, - reads stdin; Ctrl-C cancels it',
    flags: {
      ...limitFlags(() => 'as created'),
      ...CODE_FLAGS,
      '--execution-id <id>': 'makes a repeat harmless: the same id follows the first execution',
      '--resume <token>': 'go on behind this event of --execution-id',
    },
    run: execCode,
  }),
  hand({
    command: 'repl <sandbox>',
    help: 'cells one after the other, interactively',
    run: (cli, _options, [sandbox = '']) => repl(cli, resource('sandbox', sandbox)),
  }),
  hand<{ resume?: boolean }>({
    command: 'upload <sandbox> <file> [path]',
    help: `copy a file into the working directory; ${RESUMES}`,
    flags: { '--resume': 'go on with an upload that was cut' },
    run: (cli, { resume = false }, [sandbox = '', file = '', path]) =>
      uploadFile(cli, { name: resource('sandbox', sandbox), path }, file, resume),
  }),
  hand<{ resume?: boolean }>({
    command: 'download <sandbox> <path> [file]',
    help: `copy a file out of the sandbox, - is stdout; ${RESUMES}`,
    flags: { '--resume': 'go on with what is in FILE.part' },
    run: (cli, { resume = false }, [sandbox = '', path = '', file]) =>
      downloadFile(cli, { name: resource('sandbox', sandbox), path }, file, resume),
  }),
  plain(Sandboxes.method.listSandboxFiles, {
    command: 'files <sandbox>',
    help: 'regular files below the working directory',
    list: 'files',
    text: ({ files }) => fileTable(files),
    none: 'no files',
  }),
  plain(Sandboxes.method.deleteSandboxFile, {
    command: 'rm <sandbox> <path>',
    help: 'remove a file',
    text: (_answer, { args }) => `removed ${args[1] ?? ''}`,
    json: (_answer, { args }) => ({ path: args[1] }),
  }),
  plain(Sandboxes.method.renewSandbox, {
    command: 'renew <sandbox>',
    help: 'let a sandbox live longer, counted from now',
    flags: { '--ttl <time>': 'such as 90s, 10m, 2h (default: 10m)' },
    ...one,
  }),
  plain(Sandboxes.method.closeSandbox, {
    command: 'close <sandbox>',
    help: 'end everything in a sandbox; one that has ended stays as it is',
    ...one,
  }),
];

/** `sandbox create|list|get|run|exec|repl|upload|download|files|rm|renew|close`. */
export function addSandbox(program: Command, start: Start): void {
  addNoun(program, start, 'sandbox', 'code interpreters of your own: run code, keep names and files, move files', ENTRIES);
}
