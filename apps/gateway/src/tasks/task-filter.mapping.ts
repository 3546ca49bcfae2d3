import { type ListTasksRequest, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { TaskState as State } from '@etude/contracts/task';
import { invalidField } from '../wire/validation.js';
import { LABELS_MAX } from './task-spec.mapping.js';
import { STATES } from './task.mapping.js';

const BY_NUMBER = new Map(Object.entries(STATES).map(([state, number]) => [number, state as State]));

function stateOf(state: TaskState): State | undefined {
  if (state === TaskState.UNSPECIFIED) return undefined;
  const known = BY_NUMBER.get(state);
  if (!known) throw invalidField('state', `${state as number} is no state of a task`);
  return known;
}

/** Labels in one order, so that a page token fits the same filter however a caller's map is ordered. */
export function taskFilterOf({ state, labels }: ListTasksRequest): { state?: State; labels?: Record<string, string> } {
  const entries = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length > LABELS_MAX) throw invalidField('labels', `must not have more than ${LABELS_MAX} entries`);
  const wanted = stateOf(state);
  return { ...(wanted ? { state: wanted } : {}), ...(entries.length > 0 ? { labels: Object.fromEntries(entries) } : {}) };
}
