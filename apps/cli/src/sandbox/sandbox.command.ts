import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { CreateSandboxRequestSchema, Sandboxes, SandboxFileSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { SandboxLimitsSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Command } from 'commander';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, commandLine, type Gateway, type Start, withGateway } from '../cli.js';
import { addNoun, type Entry, fieldsOf, type Flags, hand, LIMIT, plain, REPEAT, resource } from '../command.js';
import { EXIT, type ExitCode } from '../errors.js';
import { duration, keyValue } from '../options.js';
import { bytesText, type CodeOptions, type Execution, executionOf, LIMIT_FLAGS, outcomeExit, showExecution } from './execution.js';
import { statOf, writeWhole } from '../files.js';
import { show } from '../show.js';

const SANDBOX_FLAGS: Flags = {
  '--template <name>': 'kind of sandbox (default: default)',
  '--ttl <time>': { help: 'lifetime of the sandbox without a renewal (default: 10m)', parse: duration },
  '--scratchpad': 'give the code a scratchpad, with store(), recall(), observe() and fail()',
  '--label <key=value>': { help: 'repeatable', parse: keyValue },
  ...REPEAT,
};
const CREATE_FLAGS: Flags = { ...LIMIT_FLAGS, ...SANDBOX_FLAGS };

const CODE_FLAGS: Flags = {
  '--shell': 'the code is a command line for /bin/sh, not Python',
  '--stdin <text>': 'stdin for --shell; @FILE reads a file, - reads stdin',
};

async function createRequest(options: object): Promise<MessageInitShape<typeof CreateSandboxRequestSchema>> {
  const limits = await fieldsOf(SandboxLimitsSchema, LIMIT_FLAGS, options);
  return { requestId: randomUUID(), limits, ...(await fieldsOf(CreateSandboxRequestSchema, SANDBOX_FLAGS, options)) };
}

/** `sandbox exec`: returns 130 if Ctrl-C ended the code, else the exit code of `outcomeExit`. */
async function execCode(cli: Cli, options: CodeOptions, [sandbox = '', code]: readonly string[]): Promise<number> {
  const execution = await executionOf(resource('sandbox', sandbox), code, options);
  return withGateway(cli, (gateway) => exitOf(cli, gateway, execution));
}

async function exitOf(cli: Cli, gateway: Gateway, execution: Execution): Promise<ExitCode> {
  const outcome = await showExecution(cli, gateway, execution);
  return cli.signal.aborted ? EXIT.interrupted : outcomeExit(outcome);
}

async function runCode(cli: Cli, options: CodeOptions, [code]: readonly string[]): Promise<number> {
  const execution = await executionOf('', code, options);
  return withGateway(cli, async (gateway) => {
    cli.out.status('waiting for a sandbox');
    const request = await createRequest(options);
    const { name } = await ridingOut(cli.signal, () => gateway.sandboxes.createSandbox(request, callSettings(cli)));
    cli.out.status('');
    try {
      return await exitOf(cli, gateway, { ...execution, name });
    } finally {
      const never = new AbortController().signal;
      await ridingOut(never, () => gateway.sandboxes.closeSandbox({ name }, { timeoutMs: cli.globals.timeout }));
    }
  });
}

const ENTRIES: readonly Entry[] = [
  plain(Sandboxes.method.createSandbox, {
    command: 'create',
    help: 'create a sandbox and print its name',
    flags: CREATE_FLAGS,
    fills: SandboxLimitsSchema,
    ask: (_filled, { options }) => createRequest(options),
    text: ({ name }) => name,
  }),
  plain(Sandboxes.method.listSandboxes, {
    command: 'list',
    help: 'list sandboxes, newest first',
    flags: { '--state <state>': 'only in this state', ...LIMIT(50) },
    columns: ['name', 'state', 'template', 'create_time', 'expire_time', 'state_reason'],
    none: ({ cli }) => `no sandboxes; ${commandLine(cli, 'sandbox create')} makes one`,
  }),
  plain(Sandboxes.method.getSandbox, { command: 'get <sandbox>', help: 'show a sandbox', repeat: true }),
  hand<CodeOptions>({
    command: 'run <code>',
    help: 'run code in a new sandbox; @FILE reads a file, - reads stdin',
    flags: { ...CREATE_FLAGS, ...CODE_FLAGS },
    fills: SandboxLimitsSchema,
    run: runCode,
  }),
  hand<CodeOptions>({
    command: 'exec <sandbox> [code]',
    help: 'run code; later calls see its variables; @FILE reads a file, - reads stdin; Ctrl-C cancels the run',
    flags: {
      ...LIMIT_FLAGS,
      ...CODE_FLAGS,
      '--execution-id <id>': 'id of the execution; an id in use attaches to that execution',
      '--resume <token>': 'continue after this event of --execution-id',
    },
    fills: SandboxLimitsSchema,
    run: execCode,
  }),
  hand({
    command: 'upload <sandbox> <file> [path]',
    help: 'copy a file into the working directory',
    run: uploadFile,
  }),
  hand({
    command: 'download <sandbox> <path> [file]',
    help: 'copy a file out of the sandbox; - is stdout',
    run: downloadFile,
  }),
  plain(Sandboxes.method.listSandboxFiles, {
    command: 'files <sandbox>',
    help: 'list regular files below the working directory',
    columns: ['size_bytes', 'modify_time', 'path'],
  }),
  plain(Sandboxes.method.deleteSandboxFile, {
    command: 'rm <sandbox> <path>',
    help: 'remove a file',
    text: (_answer, { args }) => `removed ${args[1] ?? ''}`,
  }),
  plain(Sandboxes.method.renewSandbox, {
    command: 'renew <sandbox>',
    help: 'extend the lifetime of a sandbox, counted from now',
    flags: { '--ttl <time>': 'default: 10m' },
    repeat: true,
  }),
  plain(Sandboxes.method.closeSandbox, {
    command: 'close <sandbox>',
    help: 'close a sandbox and end its processes',
    repeat: true,
  }),
];

export function addSandbox(program: Command, start: Start): void {
  addNoun(program, start, 'sandbox', 'sandboxes that run your code', ENTRIES);
}

async function* parts(file: string, header: { readonly name: string; readonly path: string; readonly sizeBytes: bigint }) {
  yield { part: { case: 'header' as const, value: header } };
  for await (const chunk of createReadStream(file, { highWaterMark: FILE_CHUNK_BYTES_MAX }))
    yield { part: { case: 'chunk' as const, value: chunk as Uint8Array } };
}

function uploadFile(cli: Cli, _options: object, [sandbox = '', file = '', path = basename(file)]: readonly string[]): Promise<number> {
  const { signal } = cli;
  const header = { name: resource('sandbox', sandbox), path, sizeBytes: BigInt(statOf(file).size) };
  return withGateway(cli, async ({ sandboxes }) => {
    const there = await ridingOut(signal, () => sandboxes.uploadFile(parts(file, header), { signal }));
    show(cli.out, SandboxFileSchema, there, `${path}  ${bytesText(Number(there.sizeBytes))}`);
    return EXIT.ok;
  });
}

function downloadFile(cli: Cli, _options: object, [sandbox = '', path = '', file = basename(path)]: readonly string[]): Promise<number> {
  return withGateway(cli, async ({ sandboxes }) => {
    let bytes = 0;
    await writeWhole(file, async (write) => {
      for await (const { chunk } of sandboxes.downloadFile({ name: resource('sandbox', sandbox), path }, { signal: cli.signal })) {
        await write(chunk);
        bytes += chunk.byteLength;
      }
    });
    if (file !== '-') cli.out.data({ path, file, sizeBytes: bytes }, `${file}  ${bytesText(bytes)}`);
    return EXIT.ok;
  });
}
