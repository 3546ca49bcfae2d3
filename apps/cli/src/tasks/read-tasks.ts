import { toJson } from '@bufbuild/protobuf';
import { type Task, TaskSchema, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { taskTable, taskText } from './task-lines.js';

export const LIST_STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
const STATES = {
  queued: TaskState.QUEUED,
  running: TaskState.RUNNING,
  succeeded: TaskState.SUCCEEDED,
  failed: TaskState.FAILED,
  cancelled: TaskState.CANCELLED,
} as const;
const PAGE_MAX = 1_000;

/** "tasks/{task}" from either form of writing it. */
export const taskResource = (task: string) => (task.startsWith('tasks/') ? task : `tasks/${task}`);

/** Of a command that ends with this task: 0 once it succeeded. */
export const taskExit = ({ state }: Task): ExitCode => (state === TaskState.SUCCEEDED ? EXIT.ok : EXIT.failed);

export function getTask(cli: Cli, task: string, codeOnly: boolean): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.tasks.getTask({ name: taskResource(task) }, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
    if (codeOnly && !found.result?.code) throw new CliError(EXIT.failed, `${found.name} has no answer yet`);
    cli.out.data(
      codeOnly ? { code: found.result?.code } : toJson(TaskSchema, found),
      codeOnly ? (found.result?.code ?? '') : taskText(found),
    );
    return EXIT.ok;
  });
}

export interface ListOptions {
  readonly state?: (typeof LIST_STATES)[number];
  readonly label?: Readonly<Record<string, string>>;
  readonly limit: number;
}

export function listTasks(cli: Cli, { state, label = {}, limit }: ListOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const tasks: Task[] = [];
    let pageToken = '';
    do {
      const request = {
        pageSize: Math.min(limit - tasks.length, PAGE_MAX),
        pageToken,
        labels: label,
        ...(state ? { state: STATES[state] } : {}),
      };
      const page = await gateway.tasks.listTasks(request, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
      tasks.push(...page.tasks);
      pageToken = page.nextPageToken;
    } while (pageToken && tasks.length < limit);
    cli.out.data({ tasks: tasks.map((task) => toJson(TaskSchema, task)) }, tasks.length > 0 ? taskTable(tasks) : '');
    if (tasks.length === 0) cli.out.note('no tasks');
    if (pageToken) cli.out.note(`there are more; --limit shows them (now ${limit})`);
    return EXIT.ok;
  });
}

export function cancelTask(cli: Cli, task: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const call = { timeoutMs: cli.callTimeoutMs, signal: cli.signal };
    const before = await gateway.tasks.getTask({ name: taskResource(task) }, call);
    const stopped = await gateway.tasks.cancelTask({ name: before.name }, call);
    cli.out.data(toJson(TaskSchema, stopped), taskText(stopped));
    if (before.endTime !== undefined) cli.out.note(`${before.name} had ended before; nothing was cancelled`);
    return EXIT.ok;
  });
}
