import { randomUUID } from 'node:crypto';
import { type TaskEvent, TaskSchema, TaskSpecSchema, TaskState, Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Command } from 'commander';
import { callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Start, withGateway } from '../cli.js';
import { addNoun, type Flags, hand, LIMIT, plain, REPEAT, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { show } from '../show.js';
import { eventLine, explanationText, taskText } from './task-lines.js';
import { SPEC_FLAGS, type SpecOptions, taskSpec } from './task-request.js';
import { detachedText, howToAnswer, printWatch, taskExit, waitForLearning, waitForTask, type WatchOptions } from './watch-task.js';

const SUBMIT_FLAGS: Flags = {
  ...SPEC_FLAGS,
  ...REPEAT,
  '--watch': 'print events until the task is finished',
  '--wait': 'wait, and print the finished task',
  '--wait-learning': 'also wait until Etude has learned from the task',
};

interface SubmitOptions extends SpecOptions {
  readonly requestId?: string;
  readonly watch?: boolean;
  readonly wait?: boolean;
  readonly waitLearning?: boolean;
}

/** `tasks submit`. @throws CliError for wrong flags before any call is made */
async function submitTask(cli: Cli, options: SubmitOptions): Promise<number> {
  const spec = await taskSpec(options);
  if (spec.prompt.trim() === '')
    throw new CliError(EXIT.usage, 'the task has no prompt', [
      "pass --prompt 'TEXT', --prompt @FILE or --prompt - for stdin, or a file with --spec FILE",
    ]);
  const requestId = options.requestId ?? randomUUID();
  return withGateway(cli, async (gateway) => {
    const task = await ridingOut(cli.signal, () => gateway.tasks.submitTask({ spec, requestId }, callSettings(cli)));
    if (!options.watch && !options.wait && !options.waitLearning) {
      show(cli.out, TaskSchema, task, task.name);
      return EXIT.ok;
    }
    cli.out.note(task.name);
    if (options.watch && !options.waitLearning) return printWatch(cli, gateway, task.name);
    const onEvent = (event: TaskEvent) => {
      for (const line of [eventLine(event), howToAnswer(cli, task.name, event)]) if (line) cli.out.note(line);
    };
    const wait = async () => {
      const finished = await waitForTask(gateway, task.name, cli.signal, onEvent);
      return options.waitLearning ? waitForLearning(gateway, finished, cli.signal) : finished;
    };
    const done = await sayingHowToGoOn(cli, wait, () => detachedText(cli, task.name));
    show(cli.out, TaskSchema, done, taskText(done));
    return taskExit(done);
  });
}

export function addTasks(program: Command, start: Start): void {
  addNoun(program, start, 'tasks', 'submit, watch and cancel tasks', [
    hand<SubmitOptions>({
      command: 'submit',
      help: 'submit a task and print its name',
      flags: SUBMIT_FLAGS,
      fills: TaskSpecSchema,
      run: submitTask,
    }),
    plain(Tasks.method.getTask, {
      command: 'get <task>',
      help: 'show a task',
      flags: { '--code': "print only the answer's code" },
      text: (task, { options }) => {
        if (options['code'] !== true) return taskText(task);
        if (!task.result?.code) throw new CliError(EXIT.failed, `${task.name} has no answer yet`);
        return task.result.code;
      },
    }),
    plain(Tasks.method.listTasks, {
      command: 'list',
      help: 'list tasks, newest first',
      flags: { '--state <state>': 'only in this state', '--label <key=value>': 'only with this label; repeatable', ...LIMIT(50) },
      columns: ['name', 'state', 'result.verdict', 'usage.attempts', 'usage.model_calls', 'create_time', 'spec.prompt'],
    }),
    plain(Tasks.method.cancelTask, {
      command: 'cancel <task>',
      help: 'ask a task to stop',
      text: taskText,
      notes: ({ name, state, endTime, learning }) =>
        endTime && state !== TaskState.CANCELLED
          ? [`${name} had already ended; ${learning?.error?.code === 'CANCELLED' ? 'its learning' : 'nothing'} was cancelled`]
          : [],
    }),
    plain(Tasks.method.answerTask, {
      command: 'answer <task> <text>',
      help: 'answer the question of a task; @FILE reads a file, - reads stdin',
      flags: { '--key <key>': 'answer only if this question is open' },
      text: taskText,
    }),
    plain(Tasks.method.explainStep, {
      command: 'explain <task>',
      help: 'show what the model was asked in a step, with the tokens and sources of each section',
      flags: { '--step <step>': 'default: the last step that asked the model' },
      text: explanationText,
    }),
    plain(Tasks.method.getStep, { command: 'step <task> <step>', help: 'show the results of a step: texts, code, output, records' }),
    hand<WatchOptions>({
      command: 'watch <task>',
      help: 'print events until the task is finished',
      flags: { '--from <token>': 'continue after this event', '--text': "print the model's text while it is written" },
      run: (cli, options, [task = '']) => withGateway(cli, (gateway) => printWatch(cli, gateway, resource('task', task), options)),
    }),
  ]);
}

export function addUsage(program: Command, start: Start): void {
  plain(Tasks.method.getUsage, {
    command: 'usage',
    help: 'show the cost of model calls, by day, agent and purpose',
    flags: { '--agent <name>': "only this agent's calls", '--days <n>': 'days (UTC) up to today (default: 7)' },
    columns: ['day', 'agent', 'purpose', 'model_calls', 'input_tokens', 'output_tokens', 'cost_usd'],
    notes: ({ tokensPerDay, usdPerDay }) =>
      tokensPerDay > 0n || usdPerDay > 0 ? [`budget per day: ${tokensPerDay || 'any'} tokens, ${usdPerDay || 'any'} US dollars`] : [],
    none: 'no model was asked in these days',
  })(program, start);
}
