import type { MessageInitShape } from '@bufbuild/protobuf';
import { Comparison, Tasks, type Task, type TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import type { TestStack } from '@etude/test-support/stack';

/** The scripted model's answer to `oneAttempt`. It reads from a text instead of stdin, which the bare baseline lacks. */
export const BARE_SOLUTION = 'a, b = map(int, "20 22".split())\nprint(a + b)\n';

/** A plain object, so that variants can be spread. */
export type Spec = Exclude<MessageInitShape<typeof TaskSpecSchema>, { $typeName: string }>;

export type TasksClient = ServiceClient<typeof Tasks>;
export const tasksClient = (stack: TestStack): TasksClient => createServiceClient(Tasks, stack.address);

/** A task that one attempt solves: a sum, judged by one case. Each prompt differs, and nothing is recalled from earlier tasks. */
export function oneAttempt(i: number): Spec {
  return {
    prompt: `bench solve ${i}: print the sum of the two integers on one line of input`,
    memory: { preferSkills: false },
    evaluator: {
      kind: {
        case: 'ioCases' as const,
        value: { cases: [{ stdin: '20 22\n', expectedStdout: '42\n', public: true }], comparison: Comparison.WHITESPACE },
      },
    },
  };
}

/** A task with journaled steps but no code. The model answers in prose, so each attempt gets its verdict at once. */
export function onlySteps(i: number, attempts: number): Spec {
  return { ...oneAttempt(i), prompt: `bench prose ${i}: say something`, memory: { off: true, readOnly: true }, limits: { attempts } };
}

export interface Followed {
  readonly task: Task;
  /** Time from the call of SubmitTask to the first event. */
  readonly firstEventMs: number;
  readonly totalMs: number;
  /** Duration in ms of each kind of step, as the worker measured it. */
  readonly phases: ReadonlyMap<string, number>;
}

export async function follow(tasks: TasksClient, spec: Spec): Promise<Followed> {
  const start = performance.now();
  const submitted = await tasks.submitTask({ spec });
  let firstEventMs = Number.NaN;
  let last: Task | undefined;
  const phases = new Map<string, number>();
  for await (const { event } of tasks.watchTask({ name: submitted.name })) {
    if (Number.isNaN(firstEventMs)) firstEventMs = performance.now() - start;
    if (event.case === 'stepFinished') phases.set(event.value.kind, (phases.get(event.value.kind) ?? 0) + Number(event.value.durationMs));
    if (event.case === 'finished') last = event.value.task;
  }
  if (!last) throw new Error(`the watch of ${submitted.name} ended early`);
  return { task: last, firstEventMs, totalMs: performance.now() - start, phases };
}
