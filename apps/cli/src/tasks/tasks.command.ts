import { type Command, Option } from 'commander';
import type { Start } from '../cli.js';
import { integer, keyValue, repeated } from '../options.js';
import { cancelTask, getTask, LIST_STATES, type ListOptions, listTasks } from './read-tasks.js';
import { type SubmitOptions, submitTask } from './submit-task.js';
import { MEMORY_USES } from './task-spec.js';
import { showWatch } from './show-watch.js';

function addSubmit(tasks: Command, start: Start): void {
  tasks
    .command('submit')
    .description('hand in a task; prints its name')
    .allowExcessArguments()
    .option('--prompt <text>', 'what to solve; @FILE reads a file, - reads stdin')
    .option('--spec <file>', 'a whole TaskSpec as proto JSON; other flags win over it')
    .option('--file <path>', 'a file for the working directory, or NAME=PATH; repeatable, 8 MiB in all', repeated)
    .option('--evaluator <file>', 'an Evaluator as proto JSON')
    .option('--io-cases <file>', 'JSON list of {stdin, expectedStdout, public}')
    .option('--function-cases <file>', 'JSON list of {args, kwargs, expected, public}; needs --entry-point')
    .option('--tests <file>', 'Python asserts; needs --entry-point')
    .option('--setup <file>', 'trusted Python that comes before answer and tests')
    .option('--entry-point <name>', 'the function that the answer must define')
    .option('--public', 'show the tests to the model')
    .option('--command <command>', 'shell command that exits 0 for a right answer (in solution.py)')
    .addOption(new Option('--mode <mode>', 'training also writes reflections and skills').choices(['inference', 'training']))
    .option('--agent <name>', 'who owns what is learned (default: default)')
    .option('--user <name>', 'end user within the tenant')
    .option('--attempts <n>', 'at most (default: 4)', integer(1, 100))
    .option('--priority <n>', '0 to 9, larger is sooner', integer(0, 9))
    .option('--label <key=value>', 'repeatable', keyValue)
    .addOption(
      new Option('--memory <use>', 'off recalls and writes nothing, read writes nothing, learn does both').choices([...MEMORY_USES]),
    )
    .option('--reference <file>', 'a right answer; reaches no prompt before the reflection of a training run')
    .option('--untrusted', 'nobody vouches for what the task says: skills learned from it wait for review')
    .option('--request-id <id>', 'makes a repeat harmless: same id and body, same task')
    .addOption(new Option('--watch', 'then print what happens until it is finished').conflicts('wait'))
    .option('--wait', 'then wait, and print the finished task')
    .action((options: SubmitOptions, command: Command) => start(command, (cli) => submitTask(cli, options, command.args)));
}

/** `tasks submit|get|list|cancel|watch`. */
export function addTasks(program: Command, start: Start): void {
  const tasks = program.command('tasks').description('hand in tasks, look at them, follow them, stop them');
  addSubmit(tasks, start);
  tasks
    .command('get <task>')
    .description('one task as it stands')
    .option('--code', "print the answer's code and nothing else")
    .action((task: string, options: { code?: boolean }, command: Command) =>
      start(command, (cli) => getTask(cli, task, options.code === true)),
    );
  tasks
    .command('list')
    .description('newest first')
    .addOption(new Option('--state <state>', 'only in this state').choices([...LIST_STATES]))
    .option('--label <key=value>', 'only with this label; repeatable', keyValue)
    .option('--limit <n>', 'how many', integer(1, 100_000), 50)
    .action((options: ListOptions, command: Command) => start(command, (cli) => listTasks(cli, options)));
  tasks
    .command('cancel <task>')
    .description('ask a task to stop; a finished one stays as it is')
    .action((task: string, _options: object, command: Command) => start(command, (cli) => cancelTask(cli, task)));
  tasks
    .command('watch <task>')
    .description('print what happened and happens, until it is finished; Ctrl-C leaves the task running')
    .option('--from <token>', 'go on behind this event')
    .action((task: string, options: { from?: string }, command: Command) => start(command, (cli) => showWatch(cli, task, options.from)));
}
