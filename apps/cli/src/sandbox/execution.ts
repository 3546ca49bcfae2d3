import { randomUUID } from 'node:crypto';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { type Duration, durationMs } from '@bufbuild/protobuf/wkt';
import {
  type ExecuteEvent,
  ExecuteEventSchema,
  type ExecuteRequestSchema,
  type ExecutionOutcome,
  Language,
  type RichOutput,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { SandboxLimitsSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type ExitReason, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import { resuming, RideOut } from '../calls.js';
import { type Cli, commandLine, type Gateway } from '../cli.js';
import { fieldsOf, type Flags } from '../command.js';
import { CliError, EXIT, type ExitCode, isCancelled, isUnavailable } from '../errors.js';
import { readArgument } from '../files.js';
import { integer } from '../options.js';

type ExecuteInit = MessageInitShape<typeof ExecuteRequestSchema>;
export type Execution = Exclude<ExecuteInit, { $typeName: string }> & { readonly name: string };

const NEVER = new AbortController().signal;

export function outcomeExit({ exit }: ExecutionOutcome): ExitCode {
  if (exit === 'ok') return EXIT.ok;
  return RETRYABLE_EXITS.has(exit as ExitReason) ? EXIT.unavailable : EXIT.failed;
}

function printDisplay({ out }: Cli, { text, binary, json }: RichOutput): void {
  const plain = text['text/plain'];
  if (plain) out.stream('stdout', plain.endsWith('\n') ? plain : `${plain}\n`);
  const others = Object.keys({ ...binary, ...text, ...json }).filter((type) => type !== 'text/plain');
  if (others.length > 0) out.note(`(${others.join(', ')}; --json prints all forms)`);
}

function printEnd({ out }: Cli, outcome: ExecutionOutcome): void {
  const cut = Number(outcome.stdoutCutBytes + outcome.stderrCutBytes);
  if (cut > 0) out.note(`(${bytesText(cut)} in the middle of the output were dropped; --output KIB keeps more)`);
  if (outcome.exit !== 'ok') out.note(outcomeLine(outcome));
  if (outcome.workingMemory) out.stream('stdout', `\n${outcome.workingMemory}\n`);
}

/** Ctrl-C ends the code. The output up to then is still printed. */
export async function showExecution(cli: Cli, gateway: Gateway, asked: Execution): Promise<ExecutionOutcome> {
  const { out, signal } = cli;
  const { name, executionId = '' } = asked;
  const execution = { ...asked, executionId: executionId || randomUUID() };
  let token = execution.resumeToken ?? '';
  const comeBack = () =>
    commandLine(cli, `sandbox exec ${name} --execution-id ${execution.executionId}${token ? ` --resume ${token}` : ''}`);
  const stop = () => {
    out.note(`cancelling; Ctrl-C again exits at once. To see the end of the execution: ${comeBack()}`);
    const cancelled = gateway.sandboxes.cancelExecution({ name, executionId: execution.executionId }, { timeoutMs: cli.globals.timeout });
    // If cancelling fails, the execution's own limits end it.
    cancelled.catch((error: unknown) => out.note(`the execution could not be cancelled: ${(error as Error).message}`));
  };
  signal.addEventListener('abort', stop, { once: true });
  const ride = new RideOut(NEVER, (text) => out.note(text));
  const open = (resumeToken: string) => gateway.sandboxes.execute({ ...execution, resumeToken });
  try {
    for await (const message of resuming<ExecuteEvent>(ride, token, { open, isLast: ({ event }) => event.case === 'result' })) {
      token = message.resumeToken;
      const { event } = message;
      if (out.json) out.data(toJson(ExecuteEventSchema, message), '');
      else if (event.case === 'stdout' || event.case === 'stderr') out.stream(event.case, event.value);
      else if (event.case === 'display') printDisplay(cli, event.value);
      else if (event.case === 'result') printEnd(cli, event.value);
      if (event.case === 'result') return event.value;
    }
    throw new CliError(EXIT.internal, 'the execution ended without a result');
  } catch (error) {
    if (isUnavailable(error) || isCancelled(error)) out.note(`the code may still run. To see its end: ${comeBack()}`);
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export interface CodeOptions {
  readonly shell?: boolean;
  readonly stdin?: string;
  readonly executionId?: string;
  readonly resume?: string;
}

export async function executionOf(name: string, code: string | undefined, options: CodeOptions): Promise<Execution> {
  const { executionId = '', resume: resumeToken = '' } = options;
  if (resumeToken && !executionId) throw new CliError(EXIT.usage, '--resume needs --execution-id, the execution to continue');
  if (code === undefined && !resumeToken) throw new CliError(EXIT.usage, 'there is no code to run', ['pass CODE, @FILE, or - for stdin']);
  const stdin = options.stdin === undefined ? '' : await readArgument(options.stdin);
  const language = options.shell ? Language.SHELL : Language.PYTHON;
  const text = code === undefined ? '' : await readArgument(code);
  const limits = await fieldsOf(SandboxLimitsSchema, LIMIT_FLAGS, options);
  return { name, language, code: text, stdin, executionId, resumeToken, limits };
}

/** `exec` defaults to the limits with which the sandbox was created. */
export const LIMIT_FLAGS: Flags = {
  '--cpu <time>': { help: 'processor time (default: 10s)', field: 'cpuTime' },
  '--wall <time>': { help: 'wall time (default: 20s)', field: 'wallTime' },
  '--memory <mib>': { help: 'default: 512', field: 'memoryMib', parse: integer(16, 65_536) },
  '--processes <n>': 'default: 64',
  '--file-size <mib>': { help: 'largest file (default: 64)', field: 'fileSizeMib' },
  '--output <kib>': { help: 'KiB to keep of stdout and of stderr, from start and end (default: 256)', field: 'outputKib' },
  '--disk <mib>': { help: 'default: 128', field: 'diskMib' },
};

const MIB = 1_048_576;

export function bytesText(bytes: number): string {
  if (bytes >= MIB) return `${(bytes / MIB).toFixed(1)} MiB`;
  return bytes >= 1_024 ? `${(bytes / 1_024).toFixed(1)} KiB` : `${bytes} B`;
}

/** Exits after which the sandbox itself is lost. */
const LOST: ReadonlySet<string> = new Set(['kernel_lost', 'evicted', 'oomkilled', 'node_lost', 'infra']);

const seconds = (duration: Duration | undefined) => `${((duration ? durationMs(duration) : 0) / 1_000).toFixed(1)} s`;

/** One line with the exit of the execution (docs/sandboxes.md lists the exits), its reason and its usage. */
export function outcomeLine({ exit, exitCode, signal, error, wall, cpu, memoryPeakKib, stateLost }: ExecutionOutcome): string {
  const how = [exit, exit === 'nonzero' ? `code ${exitCode ?? ''}` : '', signal === undefined ? '' : `signal ${signal}`];
  const type = error?.type && !LOST.has(exit) ? `${error.type}: ` : '';
  const why = error?.message ? `${type}${error.message.replace(`${exit}: `, '')}${error.line > 0 ? ` (line ${error.line})` : ''}` : '';
  const took = `${seconds(wall)}, ${seconds(cpu)} cpu, ${bytesText(Number(memoryPeakKib) * 1_024)}`;
  const loss = LOST.has(exit) ? '; the sandbox and its files are lost' : stateLost ? '; its variables are lost, its files stay' : '';
  return `${[how.filter(Boolean).join(' '), why, took].filter(Boolean).join(' · ')}${loss}`;
}
