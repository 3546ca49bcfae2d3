import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { type SubmitTaskRequestSchema, type Task, TaskSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isUnavailable } from '../grpc-errors.js';
import { taskExit } from './read-tasks.js';
import { printWatch } from './show-watch.js';
import { eventLine, taskText } from './task-lines.js';
import { type SpecOptions, taskSpec } from './task-spec.js';
import { waitForTask } from './watch-task.js';

export interface SubmitOptions extends SpecOptions {
  readonly requestId?: string;
  readonly watch?: boolean;
  readonly wait?: boolean;
}

/** With a request id a repeat is harmless, so that a gateway that is away or busy is simply asked again, `triesMax` times in all. */
export async function submitWithRetry(
  gateway: Gateway,
  request: MessageInitShape<typeof SubmitTaskRequestSchema>,
  { signal, timeoutMs, triesMax = 5 }: { signal: AbortSignal; timeoutMs: number; triesMax?: number },
): Promise<Task> {
  for (let trial = 1; ; trial++) {
    try {
      return await gateway.tasks.submitTask(request, { timeoutMs, signal });
    } catch (error) {
      if (!isUnavailable(error) || trial >= triesMax) throw error;
      await sleep(100 * 2 ** trial, undefined, { signal });
    }
  }
}

function noteEvent({ out }: Cli, line: string): void {
  if (line) out.note(line);
}

const PROMPT_HINT = ["a task is told with --prompt 'TEXT', --prompt @FILE or --prompt - for stdin, or in a file with --spec FILE"];

/** @param words that belong to no flag. @throws CliError before anything is asked of a gateway */
export async function submitTask(cli: Cli, options: SubmitOptions, words: readonly string[] = []): Promise<number> {
  if (words.length > 0) throw new CliError(EXIT.usage, `${JSON.stringify(words.join(' '))} belongs to no flag`, PROMPT_HINT);
  const spec = await taskSpec(options);
  if (spec.prompt.trim() === '') throw new CliError(EXIT.usage, 'the task has no prompt', PROMPT_HINT);
  const requestId = options.requestId ?? randomUUID();
  return withGateway(cli, async (gateway) => {
    const task = await submitWithRetry(gateway, { spec, requestId }, { signal: cli.signal, timeoutMs: cli.callTimeoutMs });
    if (options.watch) {
      cli.out.note(task.name);
      return printWatch(cli, gateway, task.name);
    }
    if (!options.wait) {
      cli.out.data(toJson(TaskSchema, task), task.name);
      return EXIT.ok;
    }
    cli.out.note(task.name);
    const done = await waitForTask(gateway, task.name, cli.signal, (event) => noteEvent(cli, eventLine(event))).catch((error: unknown) => {
      if (cli.signal.aborted)
        cli.out.note(`detached; ${task.name} goes on. Come back with: ${commandLine(cli, `tasks watch ${task.name}`)}`);
      throw error;
    });
    cli.out.data(toJson(TaskSchema, done), taskText(done));
    return taskExit(done);
  });
}
