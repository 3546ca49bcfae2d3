import { randomUUID } from 'node:crypto';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import {
  type ExecuteEvent,
  ExecuteEventSchema,
  type ExecuteRequestSchema,
  type ExecutionOutcome,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type ExitReason, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import { type Cli, commandLine } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isCancelled, isUnavailable } from '../grpc-errors.js';
import { DisplayFolder, plainText, unshownForms } from './displays.js';
import { awayText, RideOut } from './ride-out.js';
import { cutLine, outcomeLine } from './sandbox-lines.js';

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
