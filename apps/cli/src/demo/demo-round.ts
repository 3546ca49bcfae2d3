import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { type Task, type TaskEvent, TaskEventSchema, TaskSchema, TaskState, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Cli, Gateway } from '../cli.js';
import type { Problem } from '../eval/problems.js';
import { firstLine } from '../output.js';
import { eventLine, tokensOf } from '../tasks/task-lines.js';
import { waitForTask } from '../tasks/watch-task.js';

/** What a round's tasks took, added up from the tasks as the API answers them. */
export interface RoundCount {
  readonly tasks: number;
  readonly solved: number;
  readonly modelCalls: number;
  readonly tokens: number;
  readonly attempts: number;
  readonly skillsUsed: number;
  /** Model calls that wrote summaries, reflections and skills, from the steps' events. */
  readonly learningCalls: number;
  readonly seconds: number;
}

export interface Round extends RoundCount {
  readonly finished: readonly Task[];
}

const LEARNING_STEPS = new Set(['summary', 'reflection', 'distil']);
const ID_WIDTH = 18;
/** Tasks at once; their lines mix, so each begins with its task. */
const CONCURRENCY = 2;

function learningCalls({ event }: TaskEvent): number {
  return event.case === 'stepFinished' && LEARNING_STEPS.has(event.value.kind) ? (event.value.usage?.modelCalls ?? 0) : 0;
}

function countRound(finished: readonly Task[], learning: number, seconds: number): RoundCount {
  const sum = (pick: (task: Task) => number) => finished.reduce((total, task) => total + pick(task), 0);
  return {
    tasks: finished.length,
    solved: sum(({ state, result }) => (state === TaskState.SUCCEEDED && result?.verdict === Verdict.AC ? 1 : 0)),
    modelCalls: sum(({ usage }) => usage?.modelCalls ?? 0),
    tokens: sum(({ usage }) => tokensOf(usage)),
    attempts: sum(({ usage }) => usage?.attempts ?? 0),
    skillsUsed: sum(({ result }) => (result?.skill ? 1 : 0)),
    learningCalls: learning,
    seconds,
  };
}

/** Submits the problems over gRPC and prints what happens to each while it happens. */
export async function runRound(cli: Cli, gateway: Gateway, round: number, problems: readonly Problem[]): Promise<Round> {
  const finished: Task[] = [];
  const queue = [...problems];
  let learning = 0;
  const started = performance.now();
  const say = (id: string, value: object, text: string) => cli.out.data({ round, id, ...value }, text && `${id.padEnd(ID_WIDTH)} ${text}`);
  const lane = async () => {
    for (let problem = queue.shift(); problem; problem = queue.shift()) {
      const { id, spec } = problem;
      const task = await gateway.tasks.submitTask({ spec, requestId: randomUUID() }, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
      say(id, { kind: 'submitted', task: task.name, prompt: spec.prompt }, firstLine(spec.prompt, 96));
      const done = await waitForTask(gateway, task.name, cli.signal, (event) => {
        learning += learningCalls(event);
        say(id, { kind: 'event', event: toJson(TaskEventSchema, event) }, eventLine(event));
      });
      cli.out.data(...finishedLine(round, id, done));
      finished.push(done);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
  return { finished, ...countRound(finished, learning, (performance.now() - started) / 1_000) };
}

/** The events have said it to people already. */
const finishedLine = (round: number, id: string, task: Task): [object, string] => [
  { kind: 'task', round, id, task: toJson(TaskSchema, task) },
  '',
];
