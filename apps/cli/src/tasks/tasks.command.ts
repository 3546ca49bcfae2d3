import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { TaskSchema, Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Command } from 'commander';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, type Start, withGateway } from '../cli.js';
import { addNoun, type Flags, hand, LIMIT, plain, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { integer, keyValue, repeated } from '../options.js';
import { eventLine, taskTable, taskText } from './task-lines.js';
import { MEMORY_USES, type SpecOptions, taskSpec } from './task-spec.js';
import { detachedText, printWatch, taskExit, waitForTask } from './watch-task.js';

const SPEC_FLAGS: Flags = {
  '--prompt <text>': 'what to solve; @FILE reads a file, - reads stdin',
  '--spec <file>': 'a whole TaskSpec as proto JSON; other flags win over it',
  '--file <path>': { help: 'a file for the working directory, or NAME=PATH; repeatable, 8 MiB in all', parse: repeated },
  '--evaluator <file>': 'an Evaluator as proto JSON',
  '--io-cases <file>': 'JSON list of {stdin, expectedStdout, public}',
  '--function-cases <file>': 'JSON list of {args, kwargs, expected, public}; needs --entry-point',
  '--tests <file>': 'Python asserts; needs --entry-point',
  '--setup <file>': 'trusted Python that comes before answer and tests',
  '--entry-point <name>': 'the function that the answer must define',
  '--public': 'show the tests to the model',
  '--command <command>': 'shell command that exits 0 for a right answer (in solution.py)',
  '--mode <mode>': { help: 'training also writes reflections and skills', choices: ['inference', 'training'] },
  '--agent <name>': 'who owns what is learned (default: default)',
  '--user <name>': 'end user within the tenant',
  '--attempts <n>': { help: 'at most (default: 4)', parse: integer(1, 100) },
  '--priority <n>': { help: '0 to 9, larger is sooner', parse: integer(0, 9) },
  '--label <key=value>': { help: 'repeatable', parse: keyValue },
  '--memory <use>': { help: 'off recalls and writes nothing, read writes nothing, learn does both', choices: MEMORY_USES },
  '--reference <file>': 'a right answer; reaches no prompt before the reflection of a training run',
  '--untrusted': 'nobody vouches for the task: skills learned from it wait for review',
  '--request-id <id>': 'makes a repeat harmless: same id and body, same task',
  '--watch': 'then print events until the task is finished',
  '--wait': 'then wait, and print the finished task',
};

export interface SubmitOptions extends SpecOptions {
  readonly requestId?: string;
  readonly watch?: boolean;
  readonly wait?: boolean;
}

const PROMPT_HINT = ["give the task with --prompt 'TEXT', --prompt @FILE or --prompt - for stdin, or in a file with --spec FILE"];

/** @param words that belong to no flag. @throws CliError before anything is asked of a gateway */
export async function submitTask(cli: Cli, options: SubmitOptions, words: readonly string[] = []): Promise<number> {
  if (words.length > 0) throw new CliError(EXIT.usage, `${JSON.stringify(words.join(' '))} belongs to no flag`, PROMPT_HINT);
  const spec = await taskSpec(options);
  if (spec.prompt.trim() === '') throw new CliError(EXIT.usage, 'the task has no prompt', PROMPT_HINT);
  const requestId = options.requestId ?? randomUUID();
  return withGateway(cli, async (gateway) => {
    const task = await ridingOut(cli.signal, () => gateway.tasks.submitTask({ spec, requestId }, callSettings(cli)));
    if (!options.watch && !options.wait) {
      cli.out.data(toJson(TaskSchema, task), task.name);
      return EXIT.ok;
    }
    cli.out.note(task.name);
    if (options.watch) return printWatch(cli, gateway, task.name);
    const done = await waitForTask(gateway, task.name, cli.signal, (event) => {
      const line = eventLine(event);
      if (line) cli.out.note(line);
    }).catch((error: unknown) => {
      if (cli.signal.aborted) cli.out.note(detachedText(cli, task.name));
      throw error;
    });
    cli.out.data(toJson(TaskSchema, done), taskText(done));
    return taskExit(done);
  });
}

function cancelTask(cli: Cli, task: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const before = await gateway.tasks.getTask({ name: resource('task', task) }, callSettings(cli));
    const stopped = await gateway.tasks.cancelTask({ name: before.name }, callSettings(cli));
    cli.out.data(toJson(TaskSchema, stopped), taskText(stopped));
    if (before.endTime !== undefined) cli.out.note(`${before.name} had ended before; nothing was cancelled`);
    return EXIT.ok;
  });
}

const getTask = plain(Tasks.method.getTask, {
  command: 'get <task>',
  help: 'one task as it stands',
  flags: { '--code': "print the answer's code and nothing else" },
  text: (task, { options }) => {
    if (options['code'] !== true) return taskText(task);
    if (!task.result?.code) throw new CliError(EXIT.failed, `${task.name} has no answer yet`);
    return task.result.code;
  },
  json: (task, { options }) => (options['code'] === true ? { code: task.result?.code } : toJson(TaskSchema, task)),
});

const listTasks = plain(Tasks.method.listTasks, {
  command: 'list',
  help: 'newest first',
  flags: {
    '--state <state>': { help: 'only in this state', choices: ['queued', 'running', 'succeeded', 'failed', 'cancelled'] },
    '--label <key=value>': 'only with this label; repeatable',
    ...LIMIT(50),
  },
  list: 'tasks',
  text: ({ tasks }) => taskTable(tasks),
  none: 'no tasks',
});

/** `tasks submit|get|list|cancel|watch`. */
export function addTasks(program: Command, start: Start): void {
  const tasks = addNoun(program, start, 'tasks', 'hand in tasks, look at them, follow them, stop them', [
    hand<SubmitOptions>({
      command: 'submit',
      loose: true,
      help: 'hand in a task; prints its name',
      flags: SPEC_FLAGS,
      run: submitTask,
    }),
    getTask,
    listTasks,
    hand({
      command: 'cancel <task>',
      help: 'ask a task to stop; a finished one stays as it is',
      run: (cli, _options, [task = '']) => cancelTask(cli, task),
    }),
    hand<{ from?: string }>({
      command: 'watch <task>',
      help: 'print past and coming events until the task is finished; Ctrl-C leaves the task running',
      flags: { '--from <token>': 'go on behind this event' },
      run: (cli, { from }, [task = '']) => withGateway(cli, (gateway) => printWatch(cli, gateway, resource('task', task), from)),
    }),
  ]);
  const submit = tasks.commands.find((command) => command.name() === 'submit');
  submit?.options.find(({ long }) => long === '--watch')?.conflicts('wait');
}
