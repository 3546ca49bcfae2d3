import { type StopReason, type TaskRecord, type TaskResult, type TaskSpec, type TaskState, Usage } from '@etude/contracts/task';
import type { Redis } from 'ioredis';
import type { RedisKeys } from '../redis/keys.js';
import { answersOf, newestFirst, type Page } from '../redis/pages.js';

/** Parses a task's hash; null where the hash is empty. */
export function readTaskRecord(tenant: string, id: string, fields: Record<string, string>): TaskRecord | null {
  if (!fields.state || !fields.spec) return null;
  return {
    id,
    tenant,
    spec: JSON.parse(fields.spec) as TaskSpec,
    state: fields.state as TaskState,
    stopReason: (fields.stopReason || null) as StopReason | null,
    result: json(fields.result) as TaskResult | null,
    usage: (json(fields.usage) ?? Usage.parse({})) as Usage,
    error: json(fields.error) as { code: string; message: string } | null,
    cancelRequested: fields.cancelRequested === '1',
    createdAt: Number(fields.createdAt),
    updatedAt: Number(fields.updatedAt),
    endedAt: fields.endedAt ? Number(fields.endedAt) : null,
    revision: Number(fields.revision ?? 0),
  };
}

/** The hash of a new task, as a flat list. The script adds the times. */
export function newTaskFields(spec: TaskSpec, requestKey: string): string[] {
  const fields = {
    spec: JSON.stringify(spec),
    state: 'queued',
    agent: spec.agent,
    user: spec.user ?? '',
    labels: JSON.stringify(spec.labels),
    priority: spec.priority,
    usage: JSON.stringify(Usage.parse({})),
    requestKey,
    revision: 1,
  };
  return Object.entries(fields).flat().map(String);
}

/** Parses a field; null where it is missing or empty. */
function json(text: string | null | undefined): unknown {
  return text ? JSON.parse(text) : null;
}

export interface TaskFilter {
  readonly pageSize: number;
  /** Id of the last task seen; the page begins with the next older one. */
  readonly after?: string;
  readonly state?: TaskState;
  /** A task must have all of these labels. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Reads one page of a tenant's tasks, newest first. Only tasks that pass the filter are read in full. */
export async function listTasks(redis: Redis, keys: RedisKeys, tenant: string, filter: TaskFilter): Promise<Page<TaskRecord>> {
  const wanted = Object.entries(filter.labels ?? {});
  const isWanted = (state: string, labels: Record<string, string>) =>
    (!filter.state || state === filter.state) && wanted.every(([name, value]) => labels[name] === value);
  return newestFirst(redis, keys.tasks(tenant), filter, async (ids) => {
    const looks = redis.pipeline();
    for (const id of ids) looks.hmget(keys.task(tenant, id), 'state', 'labels').hstrlen(keys.task(tenant, id), 'spec');
    const answers = await answersOf(looks);
    return ids.map((id, i) => {
      const [state, labels] = answers[2 * i] as [string | null, string | null];
      if (!state) return null;
      return {
        isWanted: isWanted(state, (json(labels) ?? {}) as Record<string, string>),
        bytes: Number(answers[2 * i + 1]),
        load: async () => readTaskRecord(tenant, id, await redis.hgetall(keys.task(tenant, id))),
      };
    });
  });
}
