import { toJson } from '@bufbuild/protobuf';
import { LearningState, type Task, type TaskEvent, TaskEventSchema, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { resuming, ridingOut, RideOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, commandLine, type Gateway } from '../cli.js';
import { CliError, EXIT, type ExitCode } from '../errors.js';
import { printable } from '../output.js';
import { eventLine, unjudgedAnswer } from './task-lines.js';

const AWAY_MAX_MS = 120_000;

export const taskExit = ({ state }: Task): ExitCode => (state === TaskState.SUCCEEDED ? EXIT.ok : EXIT.failed);

type Note = (text: string) => void;

export interface WatchOptions {
  /** Token of the event after which to start. */
  readonly from?: string;
  /** Whether to get the model's text while it is written. */
  readonly text?: boolean;
}

/** Yields a task's events up to its `finished`. @throws the last ServiceError after the gateway was unreachable for two minutes */
const watchTask = (gateway: Gateway, name: string, signal: AbortSignal, { from = '', text = false }: WatchOptions = {}, note?: Note) =>
  resuming<TaskEvent>(new RideOut(signal, note, AWAY_MAX_MS), from, {
    open: (token) => gateway.tasks.watchTask({ name, resumeToken: token, text }, { signal }),
    isLast: ({ event }) => event.case === 'finished',
  });

/** Waits until the task is finished and returns it. @throws ServiceError like `watchTask` */
export async function waitForTask(
  gateway: Gateway,
  name: string,
  signal: AbortSignal,
  onEvent: (event: TaskEvent) => void = () => undefined,
): Promise<Task> {
  for await (const event of watchTask(gateway, name, signal)) {
    onEvent(event);
    if (event.event.case === 'finished' && event.event.value.task) return event.event.value.task;
  }
  throw new CliError(EXIT.internal, `the watch of ${name} ended without the finished task`);
}

export async function waitForLearning(gateway: Gateway, finished: Task, signal: AbortSignal): Promise<Task> {
  let task = finished;
  while (task.learning?.state === LearningState.PENDING)
    task = await ridingOut(signal, () => gateway.tasks.waitTask({ name: finished.name, learning: true }, { signal }), AWAY_MAX_MS);
  return task;
}

export const detachedText = (cli: Cli, name: string, token = '') =>
  `detached; ${name} continues. To watch it again: ${commandLine(cli, `tasks watch ${name}${token ? ` --from ${token}` : ''}`)}`;

export const howToAnswer = (cli: Cli, name: string, { event }: TaskEvent) =>
  event.case === 'question' ? `(${commandLine(cli, `tasks answer ${name} TEXT`)} answers it)` : '';

/** Prints text as it comes; '' ends a line that is not complete. */
function textPrinter({ out }: Cli): (text: string) => void {
  let isLineOpen = false;
  return (text) => {
    if (text !== '' || isLineOpen) out.stream('stdout', printable(text) || '\n');
    isLineOpen = text !== '' && !text.endsWith('\n');
  };
}

/** Prints events until the task is finished. Ctrl-C detaches: the task continues, and the command that resumes the watch is printed. */
export async function printWatch(cli: Cli, gateway: Gateway, name: string, options: WatchOptions = {}): Promise<number> {
  let token = options.from;
  const printText = textPrinter(cli);
  const started = performance.now();
  // The line for the status would overwrite text.
  const tick = options.text
    ? undefined
    : setInterval(() => cli.out.status(`… ${Math.round((performance.now() - started) / 1_000)} s`), 1_000);
  const print = async () => {
    for await (const event of watchTask(gateway, name, cli.signal, options, (text) => cli.out.note(text))) {
      token = event.resumeToken;
      const text = event.event.case === 'modelText' && !cli.out.json ? event.event.value.text : '';
      printText(text);
      if (text !== '') continue;
      const task = event.event.case === 'finished' ? event.event.value.task : undefined;
      const answer = task ? unjudgedAnswer(task) : '';
      cli.out.data(toJson(TaskEventSchema, event), answer ? `${eventLine(event)}\n\n${answer}` : eventLine(event));
      if (event.event.case === 'question') cli.out.note(howToAnswer(cli, name, event));
      if (task?.result?.code) cli.out.note(`(${commandLine(cli, `tasks get ${name} --code`)} prints the code)`);
      if (task) return taskExit(task);
    }
    return EXIT.internal;
  };
  return sayingHowToGoOn(cli, print, () => detachedText(cli, name, token)).finally(() => clearInterval(tick));
}
