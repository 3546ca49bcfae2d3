import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { durationFromMs, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  type ExecuteEvent,
  ExecuteEventSchema,
  type ExecuteRequestSchema,
  type ExecutionOutcome,
  Language,
  type RichOutput,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { SandboxLimitsSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type ExitReason, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import { awayText, RideOut } from '../calls.js';
import { type Cli, commandLine, type Gateway } from '../cli.js';
import { CliError, EXIT, type ExitCode, isCancelled, isUnavailable } from '../errors.js';
import { readArgument } from '../files.js';
import { bytesText, cutLine, outcomeLine } from './sandbox-lines.js';

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
  'text/html': 'html',
  'text/markdown': 'md',
  'text/plain': 'txt',
  'text/latex': 'tex',
  'application/json': 'json',
  'application/vnd.dataresource+json': 'table.json',
};

const extensionOf = (mediaType: string) => EXTENSIONS[mediaType] ?? mediaType.replace(/^.*\//, '').replace(/[^a-z0-9]+/g, '-');

/** Every form of one output, by media type, as a file's content. */
function formsOf({ text, binary, json }: RichOutput): Array<readonly [string, string | Uint8Array]> {
  return [
    ...Object.entries(binary),
    ...Object.entries(text),
    ...Object.entries(json).map(([type, value]) => [type, `${JSON.stringify(toJson(ValueSchema, value), null, 2)}\n`] as const),
  ];
}

/** What people see of an output in a terminal: its text. */
export const plainText = ({ text }: RichOutput): string => text['text/plain'] ?? '';

/** Forms that a terminal does not show, in words. '' where there are none. */
export function unshownForms(output: RichOutput): string {
  const forms = formsOf(output).filter(([type]) => type !== 'text/plain');
  return forms.map(([type, content]) => `${type}, ${bytesText(Buffer.byteLength(content))}`).join('; ');
}

/** Writes outputs as `1.png`, `2.table.json`, ... in the order in which they come. */
export class DisplayFolder {
  #count = 0;

  constructor(private readonly dir: string) {
    mkdirSync(dir, { recursive: true });
  }

  /** Text alone is no file of its own. @returns paths */
  save(output: RichOutput): string[] {
    const forms = formsOf(output);
    const kept = forms.length > 1 ? forms.filter(([type]) => type !== 'text/plain') : forms;
    this.#count += 1;
    return kept.map(([type, content]) => {
      const path = join(this.dir, `${this.#count}.${extensionOf(type)}`);
      writeFileSync(path, content);
      return path;
    });
  }
}

type ExecuteInit = MessageInitShape<typeof ExecuteRequestSchema>;
export type Execution = Exclude<ExecuteInit, { $typeName: string }> & { readonly name: string };

export interface ShowOptions {
  readonly saveDisplays?: string;
  /** Aborts when the execution is to be cancelled. */
  readonly cancel: AbortSignal;
}

const NEVER = new AbortController().signal;

/** Of a command that ran this: 0 where the code did what it should. */
export function outcomeExit({ exit }: ExecutionOutcome): ExitCode {
  if (exit === 'ok') return EXIT.ok;
  return RETRYABLE_EXITS.has(exit as ExitReason) ? EXIT.unavailable : EXIT.failed;
}

/** Every event of an execution until its result. A connection that breaks is taken up again behind the last event. */
async function* follow(gateway: Gateway, first: Execution, onAway: (error: Error | null) => void): AsyncGenerator<ExecuteEvent> {
  const ride = new RideOut(NEVER, onAway);
  let request = first;
  for (;;) {
    try {
      for await (const event of gateway.sandboxes.execute(request)) {
        ride.works();
        request = { ...request, resumeToken: event.resumeToken };
        yield event;
        if (event.event.case === 'result') return;
      }
      throw new CliError(EXIT.internal, 'the execution ended without a result');
    } catch (error) {
      await ride.wait(error);
    }
  }
}

/** Prints what comes: output on the stream of its name, outputs of richer kinds as their text. */
class Printer {
  readonly #folder: DisplayFolder | null;

  constructor(
    private readonly cli: Cli,
    saveDisplays: string | undefined,
  ) {
    this.#folder = saveDisplays === undefined ? null : new DisplayFolder(saveDisplays);
  }

  show(message: ExecuteEvent): void {
    const { out } = this.cli;
    const { event } = message;
    const saved = event.case === 'display' ? (this.#folder?.save(event.value) ?? []) : [];
    if (out.json) return out.data(toJson(ExecuteEventSchema, message), '');
    if (event.case === 'stdout' || event.case === 'stderr') out.stream(event.case, event.value);
    if (event.case !== 'display') return;
    const text = plainText(event.value);
    if (text) out.stream('stdout', text.endsWith('\n') ? text : `${text}\n`);
    const unshown = unshownForms(event.value);
    if (saved.length > 0) out.note(`(saved ${saved.join(', ')})`);
    else if (unshown) out.note(`(${unshown}; --save-displays DIR keeps it)`);
  }

  end(outcome: ExecutionOutcome): void {
    if (this.cli.out.json) return;
    const cut = cutLine(outcome);
    if (cut) this.cli.out.note(`(${cut})`);
    if (outcome.exit !== 'ok') this.cli.out.note(outcomeLine(outcome));
  }
}

function comeBack(cli: Cli, { name, executionId }: Execution, token: string): string {
  return commandLine(cli, `sandbox exec ${name} --execution-id ${executionId ?? ''}${token ? ` --resume ${token}` : ''}`);
}

/** @throws nothing: where it can't be cancelled, its own limits end it */
async function cancelExecution(cli: Cli, gateway: Gateway, { name, executionId }: Execution): Promise<void> {
  try {
    await gateway.sandboxes.cancelExecution({ name: name ?? '', executionId: executionId ?? '' }, { timeoutMs: cli.callTimeoutMs });
  } catch (error) {
    cli.out.note(`it could not be cancelled: ${(error as Error).message}`);
  }
}

/** Runs code and prints what comes of it, until its outcome. Cancelling ends the code; what it printed is still shown. */
export async function showExecution(cli: Cli, gateway: Gateway, asked: Execution, options: ShowOptions): Promise<ExecutionOutcome> {
  const execution = { ...asked, executionId: asked.executionId || randomUUID() };
  const printer = new Printer(cli, options.saveDisplays);
  let token = execution.resumeToken ?? '';
  const stop = () => {
    cli.out.note(`cancelling; Ctrl-C again leaves it alone. To see its end: ${comeBack(cli, execution, token)}`);
    void cancelExecution(cli, gateway, execution);
  };
  options.cancel.addEventListener('abort', stop, { once: true });
  const onAway = (error: Error | null) => cli.out.note(error ? `(${awayText(error)})` : '(back)');
  try {
    for await (const event of follow(gateway, execution, onAway)) {
      token = event.resumeToken;
      printer.show(event);
      if (event.event.case !== 'result') continue;
      printer.end(event.event.value);
      return event.event.value;
    }
    throw new CliError(EXIT.internal, 'the execution ended without a result');
  } catch (error) {
    if (isUnavailable(error) || isCancelled(error)) cli.out.note(`it may still run. To see its end: ${comeBack(cli, execution, token)}`);
    throw error;
  } finally {
    options.cancel.removeEventListener('abort', stop);
  }
}

/** Flags that bound one execution, or every one of a sandbox. Times in ms. */
export interface LimitOptions {
  readonly cpu?: number;
  readonly wall?: number;
  readonly memory?: number;
  readonly processes?: number;
  readonly fileSize?: number;
  readonly output?: number;
  readonly disk?: number;
}

const time = (name: 'cpuTime' | 'wallTime', ms: number | undefined) => (ms === undefined ? {} : { [name]: durationFromMs(ms) });

/** A limit that isn't given stays the default of the sandbox. */
export const limitsOf = (options: LimitOptions): MessageInitShape<typeof SandboxLimitsSchema> => ({
  ...time('cpuTime', options.cpu),
  ...time('wallTime', options.wall),
  memoryMib: options.memory ?? 0,
  processes: options.processes ?? 0,
  fileSizeMib: options.fileSize ?? 0,
  outputKib: options.output ?? 0,
  diskMib: options.disk ?? 0,
});

export interface CodeOptions extends LimitOptions {
  readonly shell?: boolean;
  /** Stdin of the command: text, `@FILE` or `-`. */
  readonly stdin?: string;
  readonly saveDisplays?: string;
  readonly executionId?: string;
  readonly resume?: string;
}

/** @throws CliError where there is neither code nor an execution to resume */
export async function executionOf(name: string, code: string | undefined, options: CodeOptions): Promise<Execution> {
  const { executionId = '', resume: resumeToken = '' } = options;
  if (resumeToken && !executionId) throw new CliError(EXIT.usage, '--resume needs --execution-id, the execution to go on with');
  if (code === undefined && !resumeToken)
    throw new CliError(EXIT.usage, 'there is no code to run', ['give it as CODE, @FILE, or - for stdin']);
  const stdin = options.stdin === undefined ? '' : await readArgument(options.stdin);
  const language = options.shell ? Language.SHELL : Language.PYTHON;
  const text = code === undefined ? '' : await readArgument(code);
  return { name, language, code: text, stdin, executionId, resumeToken, limits: limitsOf(options) };
}
