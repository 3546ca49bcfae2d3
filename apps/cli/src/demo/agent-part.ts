import { randomUUID } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { StepExplanationSchema, type TaskEvent, TaskEventSchema, TaskSchema, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { callSettings } from '../calls.js';
import type { Cli, Gateway } from '../cli.js';
import { findStack } from '../home/stack-state.js';
import { jsonOf } from '../show.js';
import { eventLine } from '../tasks/task-lines.js';
import { waitForTask } from '../tasks/watch-task.js';

/** The step after which the agent's worker is killed. */
const KILLED_AFTER = 'a1.s3.c1';
const SHOWN = ['Working Memory', 'Execution Memory'];

const PROMPT =
  'The tests of this repository fail (python3 -m unittest). Find the mistakes in shop/prices.py and mend them. The tests are right.';

/**
 * Lets an agent mend a small repository step by step, and kills its worker on the way.
 *
 * @param home the home of the demo's stack
 * @returns whether the agent succeeded
 */
export async function runAgent(cli: Cli, gateway: Gateway, home: string): Promise<boolean> {
  const spec = {
    agent: 'demo',
    prompt: PROMPT,
    strategy: 'codeact',
    files: repositoryFiles(join(cli.root, 'examples', 'demo', 'repository')),
    evaluator: { kind: { case: 'command' as const, value: { command: 'python3 -m unittest', answerPath: 'shop/prices.py' } } },
  };
  const { name } = await gateway.tasks.submitTask({ spec, requestId: randomUUID() }, callSettings(cli));
  cli.out.data({ kind: 'agent', task: name, prompt: PROMPT }, PROMPT);
  let isKilled = false;
  const onEvent = (event: TaskEvent) => {
    cli.out.data({ kind: 'event', event: jsonOf(TaskEventSchema, event) }, eventLine(event));
    if (isKilled || event.event.case !== 'stepFinished' || event.event.value.step !== KILLED_AFTER) return;
    isKilled = true;
    void killWorker(cli, home);
  };
  const done = await waitForTask(gateway, name, cli.signal, onEvent);
  cli.out.data({ kind: 'task', task: jsonOf(TaskSchema, done) }, '');
  await showMemories(cli, gateway, name);
  return done.state === TaskState.SUCCEEDED && isKilled;
}

function repositoryFiles(folder: string): Array<{ path: string; content: Uint8Array<ArrayBuffer> }> {
  const paths = globSync('**/*.{py,txt}', { cwd: folder }).toSorted();
  return paths
    .filter((path) => statSync(join(folder, path)).isFile())
    .map((path) => ({ path, content: new Uint8Array(readFileSync(join(folder, path))) }));
}

/** Kills the only rollout worker. The stack starts another, which goes on with the task. */
async function killWorker(cli: Cli, home: string): Promise<void> {
  const worker = (await findStack(home))?.processes.find(({ name }) => name === 'rollout-worker');
  if (!worker?.pid) return;
  process.kill(worker.pid, 'SIGKILL');
  cli.out.data({ kind: 'killed', pid: worker.pid }, `  SIGKILL to the worker (process ${worker.pid})`);
}

/** Prints the scratchpad and the findings as the model saw them in the last step. */
async function showMemories(cli: Cli, gateway: Gateway, name: string): Promise<void> {
  const explained = await gateway.tasks.explainStep({ name }, callSettings(cli));
  const shown = explained.sections.filter(({ title }) => SHOWN.includes(title)).map(({ text }) => withoutTags(text));
  const text = [`What the agent had in mind in step ${explained.step}:`, ...shown].join('\n\n');
  cli.out.data({ kind: 'explanation', explanation: jsonOf(StepExplanationSchema, explained) }, text);
}

const withoutTags = (text: string) =>
  text
    .split('\n')
    .filter((line) => !/^<\/?\w+-[0-9a-z]+>$/.test(line))
    .join('\n')
    .trim();
