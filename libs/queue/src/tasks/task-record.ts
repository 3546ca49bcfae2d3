import { type StopReason, type TaskRecord, type TaskResult, type TaskSpec, type TaskState, Usage } from '@etude/contracts/task';
import type { Redis } from 'ioredis';
import type { RedisKeys } from '../redis/keys.js';

/** Reads a task's hash. null where there is none. */
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

/** The hash of a task that was just accepted; the script adds the times. */
export function newTaskFields(spec: TaskSpec, requestKey: string): string[] {
  return [
    'spec',
    JSON.stringify(spec),
    'state',
    'queued',
    'agent',
    spec.agent,
    'user',
    spec.user ?? '',
    'labels',
    JSON.stringify(spec.labels),
    'priority',
    String(spec.priority),
    'usage',
    JSON.stringify(Usage.parse({})),
    'requestKey',
    requestKey,
    'revision',
    '1',
  ];
}

/** Whether a task is listed under this filter. */
export function matches(
  state: string | null,
  labelsJson: string | null,
  filter: { state?: TaskState; labels?: Readonly<Record<string, string>> },
): boolean {
  if (!state) return false;
  if (filter.state && state !== filter.state) return false;
  const wanted = Object.entries(filter.labels ?? {});
  if (wanted.length === 0) return true;
  const labels = (json(labelsJson) ?? {}) as Record<string, string>;
  return wanted.every(([name, value]) => labels[name] === value);
}

/** null for a field that is missing or empty. */
function json(text: string | null | undefined): unknown {
  return text ? JSON.parse(text) : null;
}

export interface TaskFilter {
  readonly pageSize: number;
  /** Id of the last task seen; tasks older than it follow. */
  readonly after?: string;
  readonly state?: TaskState;
  /** All of them must be there. */
  readonly labels?: Readonly<Record<string, string>>;
}

export interface TaskPage {
  readonly records: readonly TaskRecord[];
  /** Give it as `after` for what follows; null at the end. */
  readonly nextAfter: string | null;
}

/** Tasks looked at for one page, however few match. */
const SCAN_MAX = 5_000;
const CHUNK = 200;
/** Specs carry files; a page is cut where it gets too big to send. */
const PAGE_MAX_BYTES = 2 * 1024 * 1024;

interface Candidate {
  readonly id: string;
  readonly bytes: number;
  readonly match: boolean;
}

/** One page of a tenant's tasks, newest first. */
export async function listTasks(redis: Redis, keys: RedisKeys, tenant: string, filter: TaskFilter): Promise<TaskPage> {
  const records: TaskRecord[] = [];
  let after = filter.after ?? '';
  let bytes = 0;
  for (let scanned = 0; scanned < SCAN_MAX; scanned += CHUNK) {
    const ids = await redis.zrevrangebylex(keys.tasks(tenant), after ? `(${after}` : '+', '-', 'LIMIT', 0, CHUNK);
    for (const candidate of await judge(redis, keys, tenant, ids, filter)) {
      if (candidate.match) {
        if (records.length === filter.pageSize || (records.length > 0 && bytes + candidate.bytes > PAGE_MAX_BYTES))
          return { records, nextAfter: after };
        const record = readTaskRecord(tenant, candidate.id, await redis.hgetall(keys.task(tenant, candidate.id)));
        if (record) records.push(record);
        bytes += candidate.bytes;
      }
      after = candidate.id;
    }
    if (ids.length < CHUNK) return { records, nextAfter: null };
  }
  return { records, nextAfter: after };
}

/** Looks at state and labels only, and drops ids from the index whose task has expired. */
async function judge(redis: Redis, keys: RedisKeys, tenant: string, ids: readonly string[], filter: TaskFilter): Promise<Candidate[]> {
  const looks = redis.pipeline();
  for (const id of ids) looks.hmget(keys.task(tenant, id), 'state', 'labels').hstrlen(keys.task(tenant, id), 'spec');
  const answers = (await looks.exec()) ?? [];
  const expired: string[] = [];
  const candidates = ids.map((id, i) => {
    const [failure, fields] = answers[2 * i] ?? [];
    if (failure) throw failure;
    const [state, labels] = fields as [string | null, string | null];
    if (!state) expired.push(id);
    return { id, bytes: Number(answers[2 * i + 1]?.[1] ?? 0), match: matches(state, labels, filter) };
  });
  if (expired.length > 0) await redis.zrem(keys.tasks(tenant), ...expired);
  return candidates;
}
