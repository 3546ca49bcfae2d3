import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Task, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';

/** Means over a task and those before it, in the order of their submission. */
export interface Window {
  /** When the task was submitted, in ms since 1970. */
  readonly at: number;
  /** Share of tasks that were solved at the first attempt, or by a skill. */
  readonly firstRight: number;
  /** Per task; learning from it counts too. */
  readonly modelCalls: number;
  readonly tokens: number;
  readonly usd: number;
}

/** More points can't be distinguished. */
const POINTS_MAX = 200;

/** The number of tasks in each mean. */
export const windowOf = (tasks: number) => Math.min(50, Math.max(3, Math.ceil(tasks / 8)));

/** The tasks that ended by themselves, oldest first. */
export function endedTasks(tasks: readonly Task[]): Task[] {
  const ended = tasks.filter(({ state, createTime }) => createTime && (state === TaskState.SUCCEEDED || state === TaskState.FAILED));
  return ended.toSorted((a, b) => timestampMs(a.createTime!) - timestampMs(b.createTime!));
}

/** @param tasks ended ones, oldest first */
export function windowsOf(tasks: readonly Task[]): Window[] {
  const size = windowOf(tasks.length);
  const step = Math.ceil(tasks.length / POINTS_MAX);
  const ends = [...tasks.keys()].filter((at) => at >= size - 1 && (tasks.length - 1 - at) % step === 0);
  return ends.map((at) => meansOf(tasks.slice(at - size + 1, at + 1)));
}

function meansOf(tasks: readonly Task[]): Window {
  const usages = tasks.flatMap(({ usage, learning }) => [usage, learning?.usage].filter((one) => one !== undefined));
  const mean = (of: (usage: (typeof usages)[number]) => number) => usages.reduce((sum, usage) => sum + of(usage), 0) / tasks.length;
  const right = tasks.filter(({ state, usage }) => state === TaskState.SUCCEEDED && (usage?.attempts ?? 0) <= 1);
  return {
    at: timestampMs(tasks.at(-1)!.createTime!),
    firstRight: right.length / tasks.length,
    modelCalls: mean(({ modelCalls }) => modelCalls),
    tokens: mean(({ inputTokens, outputTokens }) => Number(inputTokens + outputTokens)),
    usd: mean(({ costUsd }) => costUsd),
  };
}
