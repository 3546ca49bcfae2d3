import { toJson } from '@bufbuild/protobuf';
import { TaskEventSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { taskExit, taskResource } from './read-tasks.js';
import { eventLine, unjudgedAnswer } from './task-lines.js';
import { watchTask } from './watch-task.js';

/** Prints events until the task is finished. Ctrl-C detaches: the task goes on, and how to come back is said. */
export async function printWatch(cli: Cli, gateway: Gateway, name: string, from = ''): Promise<number> {
  let token = from;
  const started = performance.now();
  const tick = setInterval(() => cli.out.status(`… ${Math.round((performance.now() - started) / 1_000)} s`), 1_000);
  const onAway = (error: Error | null) => cli.out.note(error ? `(lost the gateway: ${error.message}; trying again)` : '(back)');
  try {
    for await (const event of watchTask(gateway, name, { signal: cli.signal, resumeToken: from, onAway })) {
      token = event.resumeToken;
      const task = event.event.case === 'finished' ? event.event.value.task : undefined;
      const answer = task ? unjudgedAnswer(task) : '';
      cli.out.data(toJson(TaskEventSchema, event), answer ? `${eventLine(event)}\n\n${answer}` : eventLine(event));
      if (task?.result?.code) cli.out.note(`(${commandLine(cli, `tasks get ${name} --code`)} prints the code)`);
      if (event.event.case === 'finished') return task ? taskExit(task) : EXIT.ok;
    }
    return EXIT.internal;
  } catch (error) {
    if (!cli.signal.aborted) throw error;
    cli.out.note(`detached; ${name} goes on. Come back with: ${commandLine(cli, `tasks watch ${name}${token ? ` --from ${token}` : ''}`)}`);
    return EXIT.interrupted;
  } finally {
    clearInterval(tick);
    cli.out.status('');
  }
}

export function showWatch(cli: Cli, task: string, from?: string): Promise<number> {
  return withGateway(cli, (gateway) => printWatch(cli, gateway, taskResource(task), from));
}
