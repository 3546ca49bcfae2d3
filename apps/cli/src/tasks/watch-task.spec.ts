import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { TaskEventSchema, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { expect, it } from 'vitest';
import { createCli, type Gateway, readSettings } from '../cli.js';
import { Output } from '../output.js';
import { printWatch } from './watch-task.js';

type Event = MessageInitShape<typeof TaskEventSchema>['event'];

/** The output of `tasks watch --text` for these events. */
async function watched(...events: Event[]) {
  const printed = { stdout: '', stderr: '' };
  const terminal = (to: keyof typeof printed) => ({ write: (text: string) => void (printed[to] += text) });
  const out = new Output(terminal('stdout'), terminal('stderr'), false);
  const cli = createCli(readSettings({}), { timeout: 1_000 }, new AbortController().signal, out);
  const watchTask = async function* () {
    for (const event of events) yield create(TaskEventSchema, { event });
  };
  const exit = await printWatch(cli, { tasks: { watchTask } } as unknown as Gateway, 'tasks/t1', { text: true });
  return { ...printed, exit };
}

const text = (part: string): Event => ({ case: 'modelText', value: { step: 'a1.generate', text: part } });
const finished: Event = { case: 'finished', value: { task: { state: TaskState.SUCCEEDED } } };

it('prints text as it comes, without controls, and events on lines of their own', async () => {
  const { stdout, exit } = await watched(text('I th'), text('ink\u001b[2J'), finished);
  expect(stdout).toBe('I think\\x1b[2J\nsucceeded\n');
  expect(exit).toBe(0);
});

it('prints a question and how to answer it', async () => {
  const question: Event = { case: 'question', value: { key: 'a1.s1.t1', text: 'Which year?' } };
  const { stdout, stderr } = await watched(text('Hm.\n'), question, finished);
  expect(stdout).toBe('Hm.\n  asks a1.s1.t1: Which year?\nsucceeded\n');
  expect(stderr).toBe('(./etude tasks answer tasks/t1 TEXT answers it)\n');
});
