import { unlessAborted } from '@etude/contracts/errors';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { TaskEventSchema, TaskSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { isFinal, isUnjudged, type TaskRecord, type TaskResult } from '@etude/contracts/task';
import type { Producer } from '@etude/queue/jobs/producer';
import { Bell, channelsOf } from '@etude/queue/redis/channels';
import { readEvents, type Reading, type StoredEvent, type TextEvent } from '@etude/queue/tasks/events';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { taskName } from '@etude/contracts/ids';
import { toWire } from '@etude/contracts/wire/messages';
import { resumeToken } from '../wire/names.js';

/** How often a waiting call checks whether learning has ended, because a message may be lost. */
const LOOK_EVERY_MS = 15_000;

/** Whether a task has ended or waits for its caller; also true if there is no task. */
const isAtRest = (task: TaskRecord | null) => !task || isFinal(task.state) || task.state === 'input_required';

const isLearning = (task: TaskRecord | null) => task?.learning.state === 'pending';

interface Followed {
  readonly tasks: TaskStore;
  readonly producer: Pick<Producer, 'redis' | 'keys'>;
}

/**
 * The events of a task as callers see them, without polling. The `finished` event contains the final task.
 *
 * @param withText whether to get the text of the model too, while it is written
 */
export async function* watchTask(
  { tasks, producer: { redis, keys } }: Followed,
  { tenant, taskId, afterId, withText }: Reading,
  signal: AbortSignal,
): AsyncGenerator<EventInit> {
  for await (const stored of readEvents(redis, keys, { tenant, taskId, afterId, withText }, signal)) {
    const task = stored.event.type === 'finished' ? await tasks.get(tenant, taskId) : null;
    yield eventMessage(taskId, stored, task);
  }
}

/**
 * The task once it is final or asks its caller, or its state after `withinMs`; null if it doesn't exist.
 *
 * @param until.learning whether to wait for the end of the task's learning too
 * @throws the reason of `signal` if it aborts earlier
 */
export async function waitUntilAtRest(
  { tasks, producer }: Followed,
  { tenant, taskId }: Pick<Reading, 'tenant' | 'taskId'>,
  { withinMs, learning }: { readonly withinMs: number; readonly learning: boolean },
  signal: AbortSignal,
): Promise<TaskRecord | null> {
  const { redis, keys } = producer;
  const load = () => tasks.get(tenant, taskId);
  const record = await load();
  if (isAtRest(record) && !(learning && isLearning(record))) return record;
  const late = AbortSignal.timeout(Math.floor(withinMs));
  const either = AbortSignal.any([signal, late]);
  try {
    for await (const { event } of readEvents(redis, keys, { tenant, taskId, afterId: null }, either))
      if (event.type === 'finished' || (event.type === 'question' && isAtRest(await load()))) break;
    if (learning) {
      // Learning sends no events, but messages on the task's channel.
      const bell = new Bell(LOOK_EVERY_MS);
      using listening = channelsOf(redis).listen(keys.wake(tenant, taskId), bell.ring);
      await unlessAborted(listening.ready, either);
      while (isLearning(await load())) {
        await bell.rung(either);
        either.throwIfAborted();
      }
    }
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error;
  }
  signal.throwIfAborted();
  return load();
}

type EventInit = MessageInitShape<typeof TaskEventSchema>;

/** Turns "sum@3" into "skills/sum/versions/3". */
function skillVersionName(skill: string | null): string {
  const at = skill?.lastIndexOf('@') ?? -1;
  return skill === null || at < 0 ? '' : `skills/${skill.slice(0, at)}/versions/${skill.slice(at + 1)}`;
}

/** A result or attempt as callers see it: without a verdict if nobody judged it. */
function judgedMessage<J extends Pick<TaskResult, 'verdict' | 'casesTotal' | 'skill'>>(judged: J) {
  return { ...judged, verdict: isUnjudged(judged) ? undefined : judged.verdict, skill: skillVersionName(judged.skill) };
}

/** A task as callers see it; its spec includes the defaults. */
export function taskMessage(record: TaskRecord): MessageInitShape<typeof TaskSchema> {
  const { id, revision, result } = record;
  const shown = result && judgedMessage(result);
  return toWire(TaskSchema, { ...record, name: taskName(id), etag: String(revision), result: shown });
}

/** Event kinds by the names of their messages, where these differ. */
const CASES = {
  state: 'stateChanged',
  worker: 'workerChanged',
  attempt_started: 'attemptStarted',
  step: 'stepFinished',
  attempt_finished: 'attemptFinished',
  question: 'question',
  model_text: 'modelText',
} as const;

/** @param task the finished task; needed only for the `finished` event */
function eventMessage(taskId: string, { id, event, at }: StoredEvent | TextEvent, task: TaskRecord | null): EventInit {
  const told = { resumeToken: resumeToken(taskId, id), time: timestampFromMs(at) };
  if (event.type === 'finished') return { ...told, event: { case: 'finished', value: task ? { task: taskMessage(task) } : {} } };
  const name = CASES[event.type];
  const { message } = TaskEventSchema.field[name];
  const shown = event.type === 'attempt_finished' ? judgedMessage(event) : event;
  return { ...told, event: { case: name, value: message && toWire(message, shown) } } as EventInit;
}
