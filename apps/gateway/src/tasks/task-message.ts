import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { TaskEventSchema, TaskSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { taskName } from '@etude/contracts/ids';
import { isUnjudged, type TaskRecord, type TaskResult } from '@etude/contracts/task';
import { toWire } from '@etude/contracts/wire/messages';
import type { StoredEvent } from '@etude/queue/tasks/events';
import type { ModelText } from '@etude/queue/tasks/model-text';
import { resumeToken } from '../wire/names.js';

type EventInit = MessageInitShape<typeof TaskEventSchema>;

/** Turns "sum@3" into "skills/sum/versions/3". */
function skillVersionName(skill: string | null): string {
  const at = skill?.lastIndexOf('@') ?? -1;
  return skill === null || at < 0 ? '' : `skills/${skill.slice(0, at)}/versions/${skill.slice(at + 1)}`;
}

/** A result or attempt as callers see it: without a verdict where nobody judged. */
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
} as const;

/** @param task the finished task; needed only for the `finished` event */
export function eventMessage(taskId: string, { id, event, at }: StoredEvent, task: TaskRecord | null): EventInit {
  const told = { resumeToken: resumeToken(taskId, id), time: timestampFromMs(at) };
  if (event.type === 'finished') return { ...told, event: { case: 'finished', value: task ? { task: taskMessage(task) } : {} } };
  const name = CASES[event.type];
  const { message } = TaskEventSchema.field[name];
  const shown = event.type === 'attempt_finished' ? judgedMessage(event) : event;
  return { ...told, event: { case: name, value: message && toWire(message, shown) } } as EventInit;
}

/** @param token of the stored event before this text */
export function textMessage(token: string, value: ModelText): EventInit {
  return { resumeToken: token, time: timestampFromMs(Date.now()), event: { case: 'modelText', value } };
}
